//! A client certificate as one supervisor passes it to the next.

use serde::{Deserialize, Serialize};

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityRecord {
    /// DER, in hexadecimal digits.
    pub certificate: String,
    /// PKCS #8, in hexadecimal digits.
    pub key: String,
}

/// Without the key, which must not appear in a log.
impl std::fmt::Debug for IdentityRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IdentityRecord")
    }
}
