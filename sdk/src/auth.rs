//! What an auth provider is asked, and what it answers.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::IntoOutput;
use crate::{Output, ToolError};

/// A credential that a request brought: the parameter of a function with [`#[auth_provider]`](macro@crate::auth_provider).
/// Its `Debug` does not show the credential.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AuthRequest {
    /// The scheme of the header `Authorization`, in lower case: `bearer`.
    pub scheme: String,
    /// What follows it. Log it nowhere, and leave it out of errors.
    pub credential: String,
    /// Who sent it.
    #[serde(default)]
    pub peer: AuthPeer,
}

/// Who sent a credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuthPeer {
    /// The IP address.
    pub address: String,
    /// The header `User-Agent`; may be empty.
    pub user_agent: String,
}

impl fmt::Debug for AuthRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthRequest")
            .field("scheme", &self.scheme)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// Whose a credential is. An error of the function counts as [`rejected`](Self::rejected). What the scopes are worth is
/// decided by the operator's entry under `extensions.auth`.
///
/// ```
/// use talon_sdk::{AuthRequest, Authentication, ToolError};
///
/// /// Knows one token.
/// #[talon_sdk::auth_provider(read_only)]
/// async fn token(asked: AuthRequest) -> Result<Authentication, ToolError> {
///     Ok(if asked.credential == "a-token-that-somebody-configured" {
///         Authentication::accepted("ada").scope("staff")
///     } else {
///         Authentication::rejected("no such token")
///     })
/// }
/// # assert_eq!(token().action().roles, ["auth_provider"]);
/// ```
#[must_use = "nobody is let in until it is returned"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Authentication {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_unix_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Authentication {
    fn of(outcome: &'static str) -> Self {
        Self {
            outcome,
            subject: None,
            scopes: Vec::new(),
            expires_unix_ms: None,
            display_name: None,
            reason: None,
        }
    }

    /// It is this subject's: 1 to 256 bytes without control characters, and the same person's for ever.
    pub fn accepted(subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..Self::of("accepted") }
    }

    /// It is nobody's. The reason is for the operator's log; the sender is not told.
    pub fn rejected(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::of("rejected") }
    }

    /// Adds a scope.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// When it expires, in milliseconds since the beginning of 1970 in UTC.
    pub fn expires_unix_ms(mut self, expires: i64) -> Self {
        self.expires_unix_ms = Some(expires);
        self
    }

    /// What people call the subject.
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = Some(name.into());
        self
    }
}

impl IntoOutput for Authentication {
    fn into_output(self) -> Result<Output, ToolError> {
        Output::text(self.outcome).structured(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_authentication_is_structured_content() {
        let said = |answer: Authentication| answer.into_output().expect("JSON").structured_content().cloned();
        assert_eq!(
            said(Authentication::accepted("ada").scope("a").expires_unix_ms(7).display_name("Ada")),
            Some(json!({
                "outcome": "accepted", "subject": "ada", "scopes": ["a"], "expires_unix_ms": 7, "display_name": "Ada"
            }))
        );
        let rejected = said(Authentication::rejected("expired"));
        assert_eq!(rejected, Some(json!({"outcome": "rejected", "reason": "expired"})));
    }

    #[test]
    fn a_credential_is_not_shown() {
        let asked = AuthRequest {
            scheme: "bearer".to_owned(),
            credential: "hunter2".to_owned(),
            peer: AuthPeer::default(),
        };
        assert!(!format!("{asked:?}").contains("hunter2"));
    }
}
