//! What a storage backend is asked, what it answers, and what an answer is worth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::storage_bytes::{StorageBytes, StorageBytesError};
use super::text::cut;
use crate::limits::{
    MAX_REASON_CHARS, MAX_REVISION_CHARS, MAX_STORAGE_KEY_BYTES, MAX_STORAGE_PAGE_ITEMS,
    MAX_STORAGE_VALUE_BYTES,
};

/// The arguments of a storage backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageRequest {
    /// What is to be done. An operation that the backend does not know is an error, and changes nothing.
    pub op: StorageOp,
    /// With `get`, `set` and `delete`: the key, 1 to 640 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<StorageBytes>,
    /// With `set`: the value, at most 525,312 bytes (513 KiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<StorageBytes>,
    /// With `set` and `delete`: the revision that the key has to have. A `set` without it needs the key to be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// With `scan`: how the keys begin; all keys without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<StorageBytes>,
    /// With `scan`: only keys behind this one, in the order of their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<StorageBytes>,
    /// With `scan`: how many keys at most, from 1 to 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageOp {
    /// Reads a key: `found` or `absent`.
    Get,
    /// Writes a key: `stored`, once it survives the end of every process and a power cut, or `conflict`.
    Set,
    /// Removes a key: `deleted`, or `conflict`.
    Delete,
    /// Lists keys in the order of their bytes: `page`.
    Scan,
}

/// What became of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageOutcome {
    /// `get`: `value` and `revision` are the key's.
    Found,
    /// `get`: there is no such key.
    Absent,
    /// `set`: it is durable; `revision` is the new one.
    Stored,
    /// `delete`: it is durable.
    Deleted,
    /// `set`, `delete`: the key has another revision than the expected one. Nothing was changed.
    Conflict,
    /// `scan`: `items`, and `more` if there are further ones.
    Page,
    /// `set`: there is no room. Nothing was changed.
    Full,
    /// It cannot be done now. Nothing was changed, and the same request may succeed later.
    Unavailable,
    /// It will not be done, as with a key that is too long. Nothing was changed.
    Refused,
}

/// The structured answer of a storage backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageReply {
    /// What became of it.
    pub outcome: StorageOutcome,
    /// With `found` and `stored`: the revision of the key, 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `-` and `_`. Each write
    /// gives the key one that it never had, also if it was deleted in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// With `found`: the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<StorageBytes>,
    /// With `page`: keys with revision and size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<StorageItem>,
    /// With `page`: whether there are further keys behind the last item. A page with `more` has items.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
    /// With `full`, `unavailable` and `refused`: why, for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One key of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageItem {
    /// The key.
    pub key: StorageBytes,
    /// Its revision.
    pub revision: String,
    /// The size of its value in bytes.
    pub bytes: u64,
}

// serde asks for a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// A storage backend's answer, checked against what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageAnswer {
    /// The value of the key, and its revision.
    Found {
        /// The value.
        value: Vec<u8>,
        /// The revision.
        revision: String,
    },
    /// There is no such key.
    Absent,
    /// It is written, with this revision.
    Stored {
        /// The revision.
        revision: String,
    },
    /// It is removed.
    Deleted,
    /// The key has another revision.
    Conflict,
    /// Keys, in the order of their bytes.
    Page {
        /// Each key with its revision and the size of its value.
        items: Vec<(Vec<u8>, String, u64)>,
        /// Whether there are further ones.
        more: bool,
    },
    /// There is no room.
    Full(String),
    /// It cannot be done now.
    Unavailable(String),
    /// It will not be done.
    Refused(String),
}

/// Why an answer is worth nothing. Of a write it is then unknown whether it was done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageReplyError {
    /// It has another form.
    #[error("its answer is none of a storage backend: {0}")]
    Shape(String),
    /// The outcome is one of another operation.
    #[error("it answers {op:?} with {outcome:?}")]
    OtherOutcome {
        /// The operation.
        op: StorageOp,
        /// The outcome.
        outcome: StorageOutcome,
    },
    /// There is no revision, or none that may be one.
    #[error("its answer has no revision of 1 to {MAX_REVISION_CHARS} letters, digits, '-' and '_'")]
    Revision,
    /// The new revision is the one that the key had.
    #[error("it gives the key the revision again that it had before")]
    SameRevision,
    /// Bytes are not what their digest says.
    #[error("{what} of its answer: {why}")]
    Bytes {
        /// Which bytes.
        what: &'static str,
        /// What is wrong.
        why: StorageBytesError,
    },
    /// A page has keys that were not asked for, or in another order.
    #[error("its page has keys that were not asked for, or not in the order of their bytes")]
    Page,
}

impl StorageReply {
    /// Reads an answer.
    ///
    /// # Errors
    /// [`StorageReplyError::Shape`], which repeats little of the answer.
    pub fn parse(structured: &Value) -> Result<Self, StorageReplyError> {
        Self::deserialize(structured).map_err(|error| {
            const MOST: usize = 200;
            StorageReplyError::Shape(error.to_string().chars().take(MOST).collect())
        })
    }

    /// What the answer says to a request.
    ///
    /// # Errors
    /// [`StorageReplyError`]: it is no answer to this request.
    pub fn judge(self, asked: &StorageRequest) -> Result<StorageAnswer, StorageReplyError> {
        let reason = || {
            let said = self.reason.clone().unwrap_or_else(|| "it does not say why".to_owned());
            cut(said.replace(char::is_control, " "), MAX_REASON_CHARS)
        };
        Ok(match (asked.op, self.outcome) {
            (_, StorageOutcome::Unavailable) => StorageAnswer::Unavailable(reason()),
            (_, StorageOutcome::Refused) => StorageAnswer::Refused(reason()),
            (StorageOp::Set, StorageOutcome::Full) => StorageAnswer::Full(reason()),
            (StorageOp::Get, StorageOutcome::Absent) => StorageAnswer::Absent,
            (StorageOp::Get, StorageOutcome::Found) => {
                let value = self
                    .value
                    .as_ref()
                    .ok_or(StorageReplyError::Bytes { what: "the value", why: StorageBytesError::Missing })?;
                let value = value.open(MAX_STORAGE_VALUE_BYTES);
                let value = value.map_err(|why| StorageReplyError::Bytes { what: "the value", why })?;
                StorageAnswer::Found { value, revision: revision(self.revision)? }
            }
            (StorageOp::Set, StorageOutcome::Stored) => {
                let revision = revision(self.revision)?;
                if asked.expected.as_ref() == Some(&revision) {
                    return Err(StorageReplyError::SameRevision);
                }
                StorageAnswer::Stored { revision }
            }
            (StorageOp::Delete, StorageOutcome::Deleted) => StorageAnswer::Deleted,
            (StorageOp::Set | StorageOp::Delete, StorageOutcome::Conflict) => StorageAnswer::Conflict,
            (StorageOp::Scan, StorageOutcome::Page) => page(self.items, self.more, asked)?,
            (op, outcome) => return Err(StorageReplyError::OtherOutcome { op, outcome }),
        })
    }
}

fn revision(revision: Option<String>) -> Result<String, StorageReplyError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_one =
        |text: &String| !text.is_empty() && text.len() <= MAX_REVISION_CHARS && text.chars().all(plain);
    revision.filter(is_one).ok_or(StorageReplyError::Revision)
}

fn page(
    items: Vec<StorageItem>,
    more: bool,
    asked: &StorageRequest,
) -> Result<StorageAnswer, StorageReplyError> {
    let bytes = |part: &Option<StorageBytes>| {
        let opened = part.as_ref().map(|part| part.open(MAX_STORAGE_KEY_BYTES)).transpose();
        opened
            .map(Option::unwrap_or_default)
            .map_err(|why| StorageReplyError::Bytes { what: "the prefix", why })
    };
    let (prefix, mut last) = (bytes(&asked.prefix)?, bytes(&asked.after)?);
    if items.len() > asked.limit.unwrap_or(MAX_STORAGE_PAGE_ITEMS) as usize || (more && items.is_empty()) {
        return Err(StorageReplyError::Page);
    }
    let mut keys = Vec::with_capacity(items.len());
    for StorageItem { key, revision: of_key, bytes } in items {
        let key = key.open(MAX_STORAGE_KEY_BYTES);
        let key = key.map_err(|why| StorageReplyError::Bytes { what: "a key", why })?;
        if !key.starts_with(&prefix) || key <= last {
            return Err(StorageReplyError::Page);
        }
        last.clone_from(&key);
        keys.push((key, revision(Some(of_key))?, bytes));
    }
    Ok(StorageAnswer::Page { items: keys, more })
}

pub(super) fn sample() -> StorageRequest {
    StorageRequest {
        op: StorageOp::Get,
        key: Some(StorageBytes::seal(b"talon/sample")),
        value: None,
        expected: None,
        prefix: None,
        after: None,
        limit: None,
    }
}

/// Every argument at once, which no request has.
pub(super) fn full_sample() -> StorageRequest {
    let bytes = || Some(StorageBytes::seal(b"talon/sample"));
    StorageRequest {
        value: bytes(),
        expected: Some("r1".to_owned()),
        prefix: bytes(),
        after: bytes(),
        limit: Some(1),
        ..sample()
    }
}

#[cfg(test)]
#[path = "storage_backend_tests.rs"]
mod tests;
