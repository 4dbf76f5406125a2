//! What is known of a credential.

use serde::{Deserialize, Serialize};
use talon_proto::host;

use super::secret::Digest;

/// A credential as it is stored: without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CredentialRecord {
    pub(crate) id: String,
    pub(crate) kind: CredentialKind,
    pub(crate) name: String,
    pub(crate) subject: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) channel: String,
    /// The only session that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    pub(crate) created_unix_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_unix_ms: Option<u64>,
    #[serde(default)]
    pub(crate) last_used_unix_ms: u64,
    /// Lower-case hexadecimal.
    sha256: String,
}

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CredentialKind {
    /// For a program.
    Token,
    /// Of a browser.
    Session,
}

impl CredentialKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Session => "session",
        }
    }
}

/// Everything of a record but its id, times and digest.
pub(super) struct NewRecord {
    pub(super) kind: CredentialKind,
    pub(super) name: String,
    pub(super) subject: String,
    pub(super) scopes: Vec<String>,
    pub(super) channel: String,
    pub(super) session_id: Option<String>,
}

impl CredentialRecord {
    pub(super) fn new(new: NewRecord, id: String, digest: Digest, now_ms: u64, expires: Option<u64>) -> Self {
        let NewRecord { kind, name, subject, scopes, channel, session_id } = new;
        Self {
            id,
            kind,
            name,
            subject,
            scopes,
            channel,
            session_id,
            created_unix_ms: now_ms,
            expires_unix_ms: expires,
            last_used_unix_ms: 0,
            sha256: digest.to_hex(),
        }
    }

    /// Whether a secret of this digest is its.
    pub(super) fn matches(&self, digest: Digest) -> bool {
        Digest::of_hex(&self.sha256).is_some_and(|own| own.matches(digest))
    }

    /// Whether it has expired.
    pub(super) fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_unix_ms.is_some_and(|expires| expires <= now_ms)
    }
}

impl From<CredentialRecord> for host::Credential {
    fn from(record: CredentialRecord) -> Self {
        Self {
            id: record.id,
            kind: record.kind.as_str().to_owned(),
            name: record.name,
            subject: record.subject,
            scopes: record.scopes,
            channel: record.channel,
            session_id: record.session_id.unwrap_or_default(),
            created_unix_ms: record.created_unix_ms,
            expires_unix_ms: record.expires_unix_ms.unwrap_or_default(),
            last_used_unix_ms: record.last_used_unix_ms,
        }
    }
}
