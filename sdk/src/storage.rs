//! What a storage backend is asked, and what it answers.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::output::IntoOutput;
use crate::{Output, ToolError};

/// The largest page that a host asks for.
const MAX_PAGE_ITEMS: u32 = 500;

/// Bytes as they travel: base64url without padding, and their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageBytes {
    /// The bytes, as base64url without padding.
    pub data: String,
    /// Their SHA-256, as base64url without padding.
    pub sha256: String,
}

impl StorageBytes {
    /// Puts bytes into their envelope.
    #[must_use]
    pub fn seal(bytes: &[u8]) -> Self {
        Self { data: URL_SAFE_NO_PAD.encode(bytes), sha256: URL_SAFE_NO_PAD.encode(Sha256::digest(bytes)) }
    }

    /// Takes the bytes out.
    ///
    /// # Errors
    /// When it is no base64url, or the digest is one of other bytes.
    pub fn open(&self) -> Result<Vec<u8>, ToolError> {
        let bytes = URL_SAFE_NO_PAD.decode(&self.data);
        let bytes = bytes.map_err(|_| ToolError::new("an envelope is not base64url without padding"))?;
        if URL_SAFE_NO_PAD.encode(Sha256::digest(&bytes)) != self.sha256 {
            return Err(ToolError::new("the digest of an envelope is one of other bytes"));
        }
        Ok(bytes)
    }
}

/// What a storage backend is to do, as it travels: the parameter of a function with
/// [`#[storage_backend]`](macro@crate::storage_backend). Read it with [`command`](Self::command).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct StorageRequest {
    /// `get`, `set`, `delete` or `scan`.
    pub op: String,
    /// With `get`, `set` and `delete`: the key.
    #[serde(default)]
    pub key: Option<StorageBytes>,
    /// With `set`: the value.
    #[serde(default)]
    pub value: Option<StorageBytes>,
    /// With `set` and `delete`: the revision that the key has to have.
    #[serde(default)]
    pub expected: Option<String>,
    /// With `scan`: how the keys begin.
    #[serde(default)]
    pub prefix: Option<StorageBytes>,
    /// With `scan`: only keys behind this one.
    #[serde(default)]
    pub after: Option<StorageBytes>,
    /// With `scan`: how many keys at most.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// What a storage backend is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageCommand {
    /// Reads a key: answer `found` or `absent`.
    Get {
        /// The key.
        key: Vec<u8>,
    },
    /// Writes a key if its revision is the expected one (`None`: if there is no such key): answer `stored` once that is durable, or
    /// `conflict`.
    Set {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// The revision that the key has to have.
        expected: Option<String>,
    },
    /// Removes a key if its revision is the expected one: answer `deleted` once that is durable, or `conflict`.
    Delete {
        /// The key.
        key: Vec<u8>,
        /// The revision that the key has to have.
        expected: String,
    },
    /// Lists keys in the order of their bytes: answer `page`.
    Scan {
        /// How they begin.
        prefix: Vec<u8>,
        /// Only keys behind this one; empty: from the first.
        after: Vec<u8>,
        /// How many at most.
        limit: u32,
    },
}

impl StorageRequest {
    /// The command, with its bytes checked.
    ///
    /// # Errors
    /// When the operation is not known, or lacks what it needs: return the error, and change nothing.
    pub fn command(self) -> Result<StorageCommand, ToolError> {
        let needed = |part: Option<StorageBytes>, name: &str| {
            part.ok_or_else(|| ToolError::new(format!("{} needs {name}", self.op)))?.open()
        };
        let or_empty = |part: Option<StorageBytes>| part.map_or_else(|| Ok(Vec::new()), |part| part.open());
        Ok(match self.op.as_str() {
            "get" => StorageCommand::Get { key: needed(self.key, "key")? },
            "set" => StorageCommand::Set {
                key: needed(self.key, "key")?,
                value: needed(self.value, "value")?,
                expected: self.expected,
            },
            "delete" => StorageCommand::Delete {
                key: needed(self.key, "key")?,
                expected: self.expected.ok_or_else(|| ToolError::new("delete needs expected"))?,
            },
            "scan" => StorageCommand::Scan {
                prefix: or_empty(self.prefix)?,
                after: or_empty(self.after)?,
                limit: self.limit.unwrap_or(MAX_PAGE_ITEMS).clamp(1, MAX_PAGE_ITEMS),
            },
            _ => {
                return Err(ToolError::new("this storage backend knows get, set, delete and scan"));
            }
        })
    }
}

/// What a storage backend answers. An error of the function leaves open whether a write was done: answer
/// [`unavailable`](Self::unavailable) where it is certain that nothing was changed.
#[must_use = "nothing is answered until it is returned"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StorageReply {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<StorageBytes>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<StorageItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// One key of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StorageItem {
    key: StorageBytes,
    revision: String,
    bytes: u64,
}

impl StorageItem {
    /// A key, its revision, and the size of its value in bytes.
    #[must_use]
    pub fn new(key: &[u8], revision: impl Into<String>, bytes: u64) -> Self {
        Self { key: StorageBytes::seal(key), revision: revision.into(), bytes }
    }
}

impl StorageReply {
    fn of(outcome: &'static str) -> Self {
        Self { outcome, revision: None, value: None, items: Vec::new(), more: None, reason: None }
    }

    fn because(outcome: &'static str, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::of(outcome) }
    }

    /// The key's value and revision.
    pub fn found(value: &[u8], revision: impl Into<String>) -> Self {
        Self { value: Some(StorageBytes::seal(value)), revision: Some(revision.into()), ..Self::of("found") }
    }

    /// There is no such key.
    pub fn absent() -> Self {
        Self::of("absent")
    }

    /// It is written and durable. The revision is one that the key never had.
    pub fn stored(revision: impl Into<String>) -> Self {
        Self { revision: Some(revision.into()), ..Self::of("stored") }
    }

    /// It is removed, which is durable.
    pub fn deleted() -> Self {
        Self::of("deleted")
    }

    /// The key has another revision. Nothing was changed.
    pub fn conflict() -> Self {
        Self::of("conflict")
    }

    /// Keys in the order of their bytes, and whether there are further ones.
    pub fn page(items: Vec<StorageItem>, more: bool) -> Self {
        Self { items, more: Some(more), ..Self::of("page") }
    }

    /// There is no room. Nothing was changed.
    pub fn full(reason: impl Into<String>) -> Self {
        Self::because("full", reason)
    }

    /// It cannot be done now, and may be later. Nothing was changed.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::because("unavailable", reason)
    }

    /// It will not be done. Nothing was changed.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::because("refused", reason)
    }
}

impl IntoOutput for StorageReply {
    fn into_output(self) -> Result<Output, ToolError> {
        Output::text(self.outcome).structured(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(value: Value) -> StorageRequest {
        serde_json::from_value(value).expect("a request")
    }

    #[test]
    fn a_request_is_a_command_or_an_error() {
        let key = json!(StorageBytes::seal(b"a\xff"));
        let set = request(json!({"op": "set", "key": key, "value": key, "expected": "r1"}));
        assert_eq!(
            set.command().expect("a command"),
            StorageCommand::Set {
                key: b"a\xff".to_vec(),
                value: b"a\xff".to_vec(),
                expected: Some("r1".to_owned())
            }
        );
        let scan = StorageCommand::Scan { prefix: Vec::new(), after: Vec::new(), limit: 500 };
        assert_eq!(request(json!({"op": "scan", "limit": 9000})).command().expect("a command"), scan);
        let damaged = json!({"data": "YQ", "sha256": StorageBytes::seal(b"b").sha256});
        for wrong in [
            json!({"op": "get"}),
            json!({"op": "delete", "key": key}),
            json!({"op": "rename", "key": key}),
            json!({"op": "get", "key": damaged}),
        ] {
            assert!(request(wrong.clone()).command().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reply_is_structured_content() {
        let said = |reply: StorageReply| {
            let output = reply.into_output().expect("JSON");
            output.structured_content().cloned().expect("structured")
        };
        assert_eq!(said(StorageReply::stored("r2")), json!({"outcome": "stored", "revision": "r2"}));
        assert_eq!(said(StorageReply::page(Vec::new(), false)), json!({"outcome": "page", "more": false}));
        assert_eq!(said(StorageReply::full("disk")), json!({"outcome": "full", "reason": "disk"}));
    }
}
