//! What an auth provider is asked, what it answers, and what an answer grants.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text::cut;
use crate::limits::{MAX_REASON_CHARS, MAX_SCOPES, MAX_SUBJECT_BYTES};
use crate::{AccessScope, AuthEntry};

/// The arguments of an auth provider.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthRequest {
    /// The scheme of the header `Authorization`, in lower case.
    pub scheme: String,
    /// What follows it. It must not be logged.
    pub credential: String,
    /// Who sent it.
    pub peer: AuthPeer,
}

/// Who sent a credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuthPeer {
    /// The IP address.
    #[serde(default)]
    pub address: String,
    /// The header `User-Agent`; may be empty.
    #[serde(default)]
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

/// Whether a credential is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthOutcome {
    /// It is the subject's.
    Accepted,
    /// It is nobody's.
    Rejected,
}

/// The structured answer of an auth provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthReply {
    /// Whether it is accepted.
    pub outcome: AuthOutcome,
    /// With `accepted`: whose it is, at most 256 bytes without control characters; the same for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// With `accepted`: the provider's scopes, at most 64. The entry's map says what they grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// With `accepted`: when the credential expires, in milliseconds since the beginning of 1970 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_unix_ms: Option<i64>,
    /// With `accepted`: what people call the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// With `rejected`: why, for the operator's log. The sender is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Somebody whose credential was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthenticatedSubject {
    /// Whose it is, as the provider says.
    pub subject: String,
    /// What it may do.
    pub scopes: Vec<AccessScope>,
    /// When that ends, in milliseconds since the beginning of 1970 in UTC.
    pub expires_unix_ms: Option<i64>,
    /// What people call it.
    pub display_name: String,
}

/// Why a credential is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The answer is none.
    #[error("its answer is none of an auth provider: {0}")]
    Shape(String),
    /// It is rejected.
    #[error("it rejects the credential: {0}")]
    Rejected(String),
    /// It accepts, without saying whom.
    #[error("it accepts without a subject of 1 to {MAX_SUBJECT_BYTES} bytes without control characters")]
    NoSubject,
    /// It has expired.
    #[error("it accepts a credential that has expired")]
    Expired,
    /// There are too many scopes.
    #[error("it names {0} scopes, and {MAX_SCOPES} are the most")]
    TooManyScopes(usize),
    /// Nothing is granted.
    #[error("none of its scopes is in `scopes` of its entry")]
    NothingGranted,
}

impl AuthReply {
    /// Reads an answer.
    ///
    /// # Errors
    /// [`AuthError::Shape`], which repeats little of the answer.
    pub fn parse(structured: &Value) -> Result<Self, AuthError> {
        Self::deserialize(structured).map_err(|error| {
            const MOST: usize = 200;
            AuthError::Shape(error.to_string().chars().take(MOST).collect())
        })
    }

    /// Who it is, and what the entry grants it.
    ///
    /// # Errors
    /// [`AuthError`]: the request is refused.
    pub fn judge(self, entry: &AuthEntry, now_unix_ms: i64) -> Result<AuthenticatedSubject, AuthError> {
        if self.outcome == AuthOutcome::Rejected {
            let reason = self.reason.unwrap_or_else(|| "it does not say why".to_owned());
            return Err(AuthError::Rejected(cut(reason, MAX_REASON_CHARS)));
        }
        let named = |subject: &String| {
            !subject.trim().is_empty()
                && subject.len() <= MAX_SUBJECT_BYTES
                && !subject.chars().any(char::is_control)
        };
        let subject = self.subject.filter(named).ok_or(AuthError::NoSubject)?;
        if self.expires_unix_ms.is_some_and(|expires| expires <= now_unix_ms) {
            return Err(AuthError::Expired);
        }
        if self.scopes.len() > MAX_SCOPES {
            return Err(AuthError::TooManyScopes(self.scopes.len()));
        }
        let scopes = entry.granted(self.scopes.iter().map(String::as_str));
        if scopes.is_empty() {
            return Err(AuthError::NothingGranted);
        }
        let display_name = self.display_name.unwrap_or_else(|| subject.clone());
        let display_name = cut(display_name.replace(char::is_control, " "), MAX_SUBJECT_BYTES);
        Ok(AuthenticatedSubject { subject, scopes, expires_unix_ms: self.expires_unix_ms, display_name })
    }
}

pub(super) fn sample() -> AuthRequest {
    AuthRequest {
        scheme: "bearer".to_owned(),
        credential: "no-credential-of-anybody".to_owned(),
        peer: AuthPeer { address: "192.0.2.1".to_owned(), user_agent: "talon".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn entry() -> AuthEntry {
        let value = json!({"action": "oidc.authenticate", "scopes": {"chat": ["chat"], "staff": ["operate", "chat"]}});
        serde_json::from_value(value).expect("an entry")
    }

    fn judged(value: Value) -> Result<AuthenticatedSubject, AuthError> {
        AuthReply::parse(&value)?.judge(&entry(), 1000)
    }

    // Promises: EXT-44
    #[test]
    fn only_a_whole_answer_lets_somebody_in() {
        let good = json!({"outcome": "accepted", "subject": "ada", "scopes": ["staff", "x"], "expires_unix_ms": 1001});
        let subject = judged(good.clone()).expect("accepted");
        assert_eq!(subject.scopes, [AccessScope::Chat, AccessScope::Operate]);
        assert_eq!((subject.subject.as_str(), subject.display_name.as_str()), ("ada", "ada"));
        for (key, value, says) in [
            ("outcome", json!("rejected"), "rejects"),
            ("outcome", json!("yes"), "answer is none"),
            ("outcome", json!(true), "answer is none"),
            ("subject", json!(null), "without a subject"),
            ("subject", json!("  "), "without a subject"),
            ("subject", json!("a\nb"), "without a subject"),
            ("subject", json!("x".repeat(300)), "without a subject"),
            ("scopes", json!(["admin", "operate"]), "none of its scopes"),
            ("scopes", json!([]), "none of its scopes"),
            ("scopes", json!(vec!["chat"; 100]), "names 100 scopes"),
            ("expires_unix_ms", json!(1000), "expired"),
            ("role", json!("admin"), "answer is none"),
        ] {
            let mut wrong = good.clone();
            wrong[key] = value;
            let error = judged(wrong).expect_err(says).to_string();
            assert!(error.contains(says) && error.len() < 400, "{says}: {error}");
        }
        assert!(judged(json!({})).is_err());
    }

    #[test]
    fn a_credential_is_not_shown() {
        let shown = format!("{:?}", AuthRequest { credential: "hunter2".to_owned(), ..sample() });
        assert!(!shown.contains("hunter2") && shown.contains("bearer"), "{shown}");
    }

    proptest! {
        // Promises: EXT-44
        #[test]
        fn no_answer_grants_more_than_the_entry(scopes in proptest::collection::vec("chat|staff|admin|operate|[a-z]{1,4}", 0..6)) {
            let value = json!({"outcome": "accepted", "subject": "x", "scopes": scopes});
            match judged(value) {
                Ok(subject) => {
                    prop_assert!(!subject.scopes.contains(&AccessScope::Admin));
                    prop_assert!(!subject.scopes.contains(&AccessScope::Operate) || scopes.iter().any(|s| s == "staff"));
                }
                Err(error) => prop_assert_eq!(error, AuthError::NothingGranted),
            }
        }
    }
}
