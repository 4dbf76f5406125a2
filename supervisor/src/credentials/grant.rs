//! What a token may be issued for.

use std::time::Duration;

use talon_extensions::check::OWN_ISSUERS;
use talon_listen::delegation::{is_channel, is_subject};
use talon_proto::host::CreateTokenRequest;
use talon_sanitize::Raw;

use super::record::{CredentialKind, NewRecord};

/// All scopes.
const SCOPES: [&str; 5] = ["chat", "approve", "channel", "operate", "admin"];
/// The longest name of a token: a few words.
const MAX_NAME_BYTES: usize = 128;
/// The longest id of a session.
const MAX_SESSION_BYTES: usize = 128;
/// The longest lifetime of a token that expires: beyond ten years it is meant never to.
const MAX_LIFETIME: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
/// The channel of tokens that name none.
const DEFAULT_CHANNEL: &str = "api";

/// Why a token is not issued. The texts end with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GrantError {
    #[error("a token needs a scope: give some of {}", SCOPES.join(", "))]
    NoScope,
    #[error("{name} is no scope: give some of {}", SCOPES.join(", "))]
    Scope { name: String },
    #[error("the name has more than {MAX_NAME_BYTES} bytes, or a control character: write a few words")]
    Name,
    #[error("a subject is gw:ISSUER/SUBJECT in visible ASCII: leave it out for gw:token/ID")]
    Subject,
    #[error("a channel is a word of letters, digits, '-', '_', '.' and ':'")]
    Channel,
    #[error(
        "a token with the scope channel speaks for the senders of one channel: name it (--channel telegram)"
    )]
    NoChannel,
    #[error(
        "the subjects of {} are Talon's own, and no token speaks for them: name a channel (--channel telegram)",
        OWN_ISSUERS.join(", ")
    )]
    OwnIssuer,
    #[error("a session's id has at most {MAX_SESSION_BYTES} visible letters: see `talon session list`")]
    Session,
    #[error("a token lives for at most ten years: leave the expiry out if it is to live for ever")]
    Lifetime,
}

/// A checked request for a token.
pub(crate) struct TokenGrant {
    name: String,
    scopes: Vec<String>,
    subject: Option<String>,
    channel: String,
    session_id: Option<String>,
    pub(super) lifetime: Option<Duration>,
}

impl TryFrom<CreateTokenRequest> for TokenGrant {
    type Error = GrantError;

    fn try_from(request: CreateTokenRequest) -> Result<Self, GrantError> {
        let CreateTokenRequest { name, scopes, subject, channel, session_id, lifetime_ms } = request;
        if name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(GrantError::Name);
        }
        if let Some(unknown) = scopes.iter().find(|scope| !SCOPES.contains(&scope.as_str())) {
            return Err(GrantError::Scope {
                name: Raw::from(unknown).line_within(MAX_NAME_BYTES).into_string(),
            });
        }
        // In one order, each once.
        let scopes: Vec<String> = SCOPES
            .into_iter()
            .filter(|scope| scopes.iter().any(|one| one == scope))
            .map(str::to_owned)
            .collect();
        if scopes.is_empty() {
            return Err(GrantError::NoScope);
        }
        if !subject.is_empty() && !is_subject(&subject) {
            return Err(GrantError::Subject);
        }
        let speaks_for_senders = scopes.iter().any(|scope| scope == "channel");
        if channel.is_empty() && speaks_for_senders {
            return Err(GrantError::NoChannel);
        }
        if speaks_for_senders && OWN_ISSUERS.contains(&channel.as_str()) {
            return Err(GrantError::OwnIssuer);
        }
        let channel = if channel.is_empty() { DEFAULT_CHANNEL.to_owned() } else { channel };
        if !is_channel(&channel) {
            return Err(GrantError::Channel);
        }
        if session_id.len() > MAX_SESSION_BYTES || !session_id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(GrantError::Session);
        }
        let lifetime = (lifetime_ms > 0).then(|| Duration::from_millis(lifetime_ms));
        if lifetime.is_some_and(|lifetime| lifetime > MAX_LIFETIME) {
            return Err(GrantError::Lifetime);
        }
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        Ok(Self { name, scopes, subject: given(subject), channel, session_id: given(session_id), lifetime })
    }
}

impl TokenGrant {
    pub(super) fn record(self, id: &str) -> NewRecord {
        let Self { name, scopes, subject, channel, session_id, lifetime: _ } = self;
        let subject = subject.unwrap_or_else(|| format!("gw:token/{id}"));
        NewRecord { kind: CredentialKind::Token, name, subject, scopes, channel, session_id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> CreateTokenRequest {
        CreateTokenRequest { scopes: vec!["chat".to_owned()], ..CreateTokenRequest::default() }
    }

    fn refused(request: CreateTokenRequest) -> GrantError {
        TokenGrant::try_from(request).err().expect("it is refused")
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_to_do() {
        let scopes = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let with = |names: &[&str]| CreateTokenRequest { scopes: scopes(names), ..request() };
        assert_eq!(refused(with(&[])), GrantError::NoScope);
        assert_eq!(refused(with(&["root"])), GrantError::Scope { name: "root".to_owned() });
        assert_eq!(refused(with(&["channel"])), GrantError::NoChannel);
        for issuer in OWN_ISSUERS {
            let named = CreateTokenRequest { channel: issuer.to_owned(), ..with(&["channel"]) };
            assert_eq!(refused(named), GrantError::OwnIssuer);
        }
        assert_eq!(
            refused(CreateTokenRequest { subject: "root".to_owned(), ..request() }),
            GrantError::Subject
        );
        assert_eq!(
            refused(CreateTokenRequest { channel: "a b".to_owned(), ..request() }),
            GrantError::Channel
        );
        assert_eq!(
            refused(CreateTokenRequest { session_id: "a b".to_owned(), ..request() }),
            GrantError::Session
        );
        assert_eq!(refused(CreateTokenRequest { name: "a\n".to_owned(), ..request() }), GrantError::Name);
        assert_eq!(refused(CreateTokenRequest { lifetime_ms: u64::MAX, ..request() }), GrantError::Lifetime);
        let granted = TokenGrant::try_from(with(&["admin", "chat", "chat"])).ok().unwrap().record("i1");
        assert_eq!((granted.scopes, granted.subject.as_str()), (scopes(&["chat", "admin"]), "gw:token/i1"));
        assert_eq!(granted.channel, "api");
    }
}
