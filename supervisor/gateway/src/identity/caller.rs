//! The caller of a request.

use std::sync::Arc;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use http::request::Parts;
use tokio::time::Instant;

use super::scope::{Role, Scope, Scopes};
use super::subject::{Subject, SubjectError};
use crate::problem::{Problem, ProblemKind};

/// Who a request is for. A route that takes one as an argument answers nobody else: without a credential it is 401.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// For whom it counts at host and agent.
    pub subject: Subject,
    /// What it may.
    pub scopes: Scopes,
    /// The channel that it comes from: `api`, `web`, or that of a channel's token.
    pub channel: Arc<str>,
    /// The only session that it may use, if its credential names one.
    pub session: Option<Arc<str>>,
    /// By what it is known.
    pub via: Via,
}

/// By what a caller is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// A bearer token, by its id.
    Token(Arc<str>),
    /// A session of a browser, by its id: a person.
    BrowserSession(Arc<str>),
    /// An auth provider of the operator's.
    Provider {
        /// Its name.
        name: Arc<str>,
        /// Until when something that is open lasts: then its client shows the credential anew.
        until: Instant,
    },
    /// The gateway itself, for its own health.
    Gateway,
}

impl Via {
    /// The id of the credential, if it was issued by the supervisor and so may be revoked.
    #[must_use]
    pub fn credential_id(&self) -> Option<&str> {
        match self {
            Self::Token(id) | Self::BrowserSession(id) => Some(id),
            Self::Provider { .. } | Self::Gateway => None,
        }
    }
}

impl Caller {
    /// The gateway itself.
    pub(crate) fn gateway() -> Self {
        Self {
            subject: Subject::of("talon", "gateway").expect("both are short words"),
            scopes: Scopes::default(),
            channel: "gateway".into(),
            session: None,
            via: Via::Gateway,
        }
    }

    /// The role that host and agent are told. They take the lesser of it and `gateway.max_role`.
    #[must_use]
    pub fn role(&self) -> Role {
        self.scopes.role()
    }

    /// The origin that host and agent are told: `person` for a browser's session, else `program`. A decision about an approval says
    /// `person` as well: see [`Backends::agent_as_person`](crate::backends::Backends::agent_as_person).
    #[must_use]
    pub fn origin(&self) -> &'static str {
        match self.via {
            Via::BrowserSession(_) => "person",
            Via::Token(_) | Via::Provider { .. } | Via::Gateway => "program",
        }
    }

    /// Refuses a caller without this scope.
    ///
    /// # Errors
    /// A [`Problem`] that names the scope.
    pub fn require(&self, scope: Scope) -> Result<(), Problem> {
        if self.scopes.contain(scope) {
            return Ok(());
        }
        let detail = format!(
            "this needs the scope {}: use a token that has it (`talon token create`)",
            scope.as_str()
        );
        Err(Problem::new(ProblemKind::Forbidden, detail))
    }

    /// The caller for a sender of a channel, as a token with the scope `channel` names one in a message: `gw:CHANNEL/SENDER`.
    ///
    /// # Errors
    /// A [`Problem`] if its scopes do not permit that, or if the sender is no subject.
    pub fn for_sender(&self, sender: &str) -> Result<Self, Problem> {
        self.require(Scope::Channel)?;
        let wrong = |error: SubjectError| {
            Problem::new(ProblemKind::BadRequest, format!("the sender is none: {error}"))
                .with_fields(["senderId"])
        };
        let subject = Subject::of(&self.channel, sender).map_err(wrong)?;
        Ok(Self { subject, ..self.clone() })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            let detail = "send `Authorization: Bearer TOKEN` (`talon token create`), or open a session (`talon gateway open`)";
            Problem::new(ProblemKind::Unauthenticated, detail)
        })
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(scopes: &[Scope]) -> Caller {
        Caller {
            subject: Subject::of("token", "t1").unwrap(),
            scopes: scopes.iter().copied().collect(),
            channel: "telegram".into(),
            session: None,
            via: Via::Token("t1".into()),
        }
    }

    #[test]
    fn only_a_channels_token_speaks_for_senders() {
        let sender = token(&[Scope::Channel, Scope::Chat]).for_sender("42").unwrap();
        assert_eq!(sender.subject.as_str(), "gw:telegram/42");
        let refused = token(&[Scope::Chat, Scope::Admin]).for_sender("42").unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::Forbidden);
        assert!(refused.detail().contains("scope channel"));
    }

    #[test]
    fn a_token_is_a_program_and_a_browser_a_person() {
        assert_eq!(token(&[Scope::Approve]).origin(), "program");
        let browser = Caller { via: Via::BrowserSession("b1".into()), ..token(&[Scope::Chat]) };
        assert_eq!(browser.origin(), "person");
    }
}
