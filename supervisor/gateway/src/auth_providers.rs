//! Providers of identities, as `extensions.auth` names them: actions of plugins that say whose a credential is that no token of ours has.
//!
//! The providers of a credential's scheme are asked in the order of the list, until one accepts; an answer that is none rejects. Who sent
//! the credential is not told why it was not accepted, and it stands in no log. A provider that cannot be asked says nothing of the
//! credential: if no other accepts it, its sender is told to try again.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{AUTHORIZATION, USER_AGENT};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use talon_extensions::contract::{AuthError, AuthPeer, AuthReply, AuthRequest, AuthenticatedSubject};
use talon_extensions::{AuthEntry, Role, template};
use talon_proto::host::{ExecuteResponse, Outcome};
use tokio::time::Instant;

use crate::backends::Backends;
use crate::identity::{AuthenticateError, Caller, Scope, Subject, Via};
use crate::role_answer::structured_answer;
use crate::role_call::RoleCall;

/// The longest credential that is passed on, in bytes. Tokens of OpenID Connect have some kilobytes; a longer one stands for nobody.
const MAX_CREDENTIAL_BYTES: usize = 16 << 10;
/// How long an answer holds for further requests with the same credential: a plugin is not asked for each of them, and whoever is
/// locked out at the provider is locked out here within this time. An earlier expiry counts.
const ANSWER_HOLDS: Duration = Duration::from_secs(60);
/// How long a rejection holds: a client that repeats a wrong credential does not have the plugin asked each time. Short, so that somebody
/// whose credential becomes good, as with a new account, hardly notices.
const REJECTION_HOLDS: Duration = Duration::from_secs(5);
/// How long something that is open, such as a WebSocket, lasts on one answer without an expiry: then its client shows the credential anew.
const OPEN_HOLDS: Duration = Duration::from_secs(60 * 60);
/// The most answers that are kept. Beyond it the one that ends first goes, which rejections mostly do, and its credential is asked about
/// again.
const MAX_ANSWERS: usize = 1024;

/// A credential as it stands in the header `Authorization`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PresentedCredential {
    request: AuthRequest,
}

impl PresentedCredential {
    /// The credential of a request from `address`; `None` without one, with two, or with one that is too long.
    pub(crate) fn of_request(headers: &HeaderMap, address: IpAddr) -> Option<Self> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let (scheme, credential) = value.to_str().ok()?.split_once(' ')?;
        let credential = credential.trim();
        if credential.is_empty() || credential.len() > MAX_CREDENTIAL_BYTES {
            return None;
        }
        let user_agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let peer = AuthPeer { address: address.to_string(), user_agent: user_agent.to_owned() };
        let (scheme, credential) = (scheme.to_ascii_lowercase(), credential.to_owned());
        Some(Self { request: AuthRequest { scheme, credential, peer } })
    }

    /// What an answer is kept under. The scheme has no space, so two different credentials never have one key.
    fn key(&self) -> [u8; 32] {
        let AuthRequest { scheme, credential, .. } = &self.request;
        Sha256::new().chain_update(scheme).chain_update(" ").chain_update(credential).finalize().into()
    }
}

impl fmt::Debug for PresentedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

/// The providers of a configuration, with their answers: another configuration begins without any. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AuthProviders(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<AuthEntry>,
    answers: Mutex<HashMap<[u8; 32], KeptAnswer>>,
}

#[derive(Debug)]
struct KeptAnswer {
    verdict: Verdict,
    until: Instant,
}

/// What the providers say of a credential.
#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    /// It is this caller's.
    Accepted(Caller),
    /// It is nobody's.
    Rejected,
}

/// Why a provider does not accept a credential, for the log: it has nothing of the credential.
#[derive(Debug, thiserror::Error)]
enum AskError {
    /// It has answered something else.
    #[error("{0}")]
    Rejected(String),
    /// It cannot be asked now.
    #[error("{0}")]
    Unanswered(String),
}

impl AuthProviders {
    /// These, in their order.
    #[must_use]
    pub fn new(entries: Vec<AuthEntry>) -> Self {
        Self(Arc::new(Inner { entries, answers: Mutex::default() }))
    }

    /// Whether one of them takes credentials of this scheme.
    pub(crate) fn take(&self, presented: &PresentedCredential) -> bool {
        self.of_scheme(presented).next().is_some()
    }

    /// Whose a credential is.
    ///
    /// # Errors
    /// [`AuthenticateError::Invalid`] if no provider accepts it; [`AuthenticateError::NoProvider`] if one of them could not be asked.
    pub(crate) async fn caller(
        &self,
        backends: &Backends,
        presented: &PresentedCredential,
    ) -> Result<Caller, AuthenticateError> {
        let key = presented.key();
        match self.kept(&key) {
            Some(Verdict::Accepted(caller)) => return Ok(caller),
            Some(Verdict::Rejected) => return Err(AuthenticateError::Invalid),
            None => {}
        }
        let mut all_answered = true;
        for entry in self.of_scheme(presented) {
            match ask(backends, entry, &presented.request).await {
                Ok(subject) => {
                    let Some(caller) = caller(entry, &subject) else {
                        tracing::warn!(
                            provider = entry.name(),
                            "an auth provider accepts a subject that is too long"
                        );
                        continue;
                    };
                    let holds = remaining(&subject).unwrap_or(ANSWER_HOLDS).min(ANSWER_HOLDS);
                    self.keep(key, Verdict::Accepted(caller.clone()), holds);
                    return Ok(caller);
                }
                Err(AskError::Rejected(why)) => tracing::info!(
                    provider = entry.name(),
                    why,
                    "an auth provider does not accept a credential"
                ),
                Err(AskError::Unanswered(why)) => {
                    all_answered = false;
                    tracing::warn!(provider = entry.name(), why, "an auth provider cannot be asked");
                }
            }
        }
        if !all_answered {
            return Err(AuthenticateError::NoProvider);
        }
        self.keep(key, Verdict::Rejected, REJECTION_HOLDS);
        Err(AuthenticateError::Invalid)
    }

    fn of_scheme(&self, presented: &PresentedCredential) -> impl Iterator<Item = &AuthEntry> {
        let scheme = &presented.request.scheme;
        self.0.entries.iter().filter(move |entry| entry.scheme == *scheme)
    }

    fn kept(&self, key: &[u8; 32]) -> Option<Verdict> {
        let answers = self.0.answers.lock();
        answers.get(key).filter(|answer| answer.until > Instant::now()).map(|answer| answer.verdict.clone())
    }

    fn keep(&self, key: [u8; 32], verdict: Verdict, holds: Duration) {
        let now = Instant::now();
        let mut answers = self.0.answers.lock();
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, answer| answer.until > now);
        }
        if answers.len() >= MAX_ANSWERS {
            let oldest = answers.iter().min_by_key(|(_, answer)| answer.until).map(|(key, _)| *key);
            oldest.map(|key| answers.remove(&key));
        }
        answers.insert(key, KeptAnswer { verdict, until: now + holds });
    }
}

/// How long a subject's credential holds, if its provider says so.
fn remaining(subject: &AuthenticatedSubject) -> Option<Duration> {
    let expires = u64::try_from(subject.expires_unix_ms?).ok()?;
    Some(Duration::from_millis(expires.saturating_sub(now_unix_ms())))
}

fn now_unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The caller that a subject is; `None` if its name is too long for one.
fn caller(entry: &AuthEntry, subject: &AuthenticatedSubject) -> Option<Caller> {
    let until = Instant::now() + remaining(subject).unwrap_or(OPEN_HOLDS).min(OPEN_HOLDS);
    Some(Caller {
        subject: Subject::of(entry.name(), &subject.subject).ok()?,
        // Both lists of scopes are one, in two crates.
        scopes: subject.scopes.iter().filter_map(|scope| Scope::parse(scope.as_str())).collect(),
        channel: "api".into(),
        session: None,
        via: Via::Provider { name: entry.name().into(), until },
    })
}

/// Asks one provider.
async fn ask(
    backends: &Backends,
    entry: &AuthEntry,
    request: &AuthRequest,
) -> Result<AuthenticatedSubject, AskError> {
    // The type has string keys only.
    let asked = serde_json::to_value(request).unwrap_or_default();
    let arguments_json = match &entry.args {
        None => asked.to_string(),
        Some(args) => {
            // What is wrong with a template may quote what it was rendered with.
            let rendered = template::render(args, &asked).map_err(|_| {
                AskError::Unanswered("its arguments cannot be made: see `args` of its entry".to_owned())
            })?;
            serde_json::Value::Object(rendered).to_string()
        }
    };
    let call = RoleCall {
        role: Role::AuthProvider,
        action: &entry.action,
        extension: entry.name(),
        deadline: entry.deadline(),
        arguments_json,
    };
    let answer = match call.make(backends, &Caller::gateway()).await {
        Ok(Some(answer)) => answer,
        Ok(None) => return Err(AskError::Unanswered("it did not answer in time".to_owned())),
        Err(status) => {
            let why = format!("the supervisor did not make its call ({:?})", status.code());
            return Err(AskError::Unanswered(why));
        }
    };
    let structured = structured_answer(&answer).map_err(|why| {
        if is_unanswered(&answer) { AskError::Unanswered(why) } else { AskError::Rejected(why) }
    })?;
    let rejected = |error: AuthError| AskError::Rejected(for_log(&error, request));
    let reply = AuthReply::parse(&structured).map_err(rejected)?;
    let now = i64::try_from(now_unix_ms()).unwrap_or(i64::MAX);
    reply.judge(entry, now).map_err(rejected)
}

/// Whether a provider was not asked, or did not answer, for reasons that have nothing to do with the credential.
fn is_unanswered(answer: &ExecuteResponse) -> bool {
    // A credential that does not fit the action's schema, and an answer to it that is none, are as they are however often it is asked.
    const OF_CREDENTIAL: [&str; 4] = ["arguments_too_large", "bad_arguments", "bad_result", "too_large"];
    matches!(answer.outcome(), Outcome::HostFault | Outcome::Refused)
        && !OF_CREDENTIAL.contains(&answer.reason.as_str())
}

/// An error without the credential, which an answer may repeat.
fn for_log(error: &AuthError, request: &AuthRequest) -> String {
    match error {
        // It quotes a part of the answer, in which a part of the credential may stand.
        AuthError::Shape(_) => {
            "its answer is none of an auth provider: see `talon extension test`".to_owned()
        }
        _ => error.to_string().replace(&request.credential, "[credential]"),
    }
}

#[cfg(test)]
#[path = "auth_providers_tests.rs"]
mod tests;
