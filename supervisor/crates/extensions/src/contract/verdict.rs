//! What a filter or a hook answers, and what becomes of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text::cut;
use crate::limits::{
    MAX_METADATA_KEY_CHARS, MAX_METADATA_KEYS, MAX_METADATA_VALUE_BYTES, MAX_REASON_CHARS,
    MAX_REPLACEMENT_BYTES,
};
use crate::{Effect, HookEntry, Role};

/// What is to become of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It stays as it is, byte for byte.
    Pass,
    /// It stays as it is, and `metadata` is noted.
    Annotate,
    /// `message` takes its place; `metadata` is noted.
    Replace,
    /// It goes no further. The person is told `reason`.
    Drop,
}

/// The structured answer of a filter, a request hook or a response hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookVerdict {
    /// What is to become of the message.
    pub verdict: VerdictKind,
    /// The new message, with `replace` alone. At most 256 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What is noted of the turn, with `annotate` and `replace`: at most 32 keys of letters, digits, `_`, `-` and `.`, each
    /// with a text of at most 1 KiB. It replaces an earlier hook's value of the same key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Why, in a sentence for the person. More than 500 characters are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A verdict that its entry allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum VerdictOutcome {
    /// The message stays.
    Pass,
    /// The message stays, and this is noted.
    Annotate {
        /// What is noted.
        metadata: BTreeMap<String, String>,
    },
    /// This takes its place.
    Replace {
        /// The new message.
        message: String,
        /// What is noted.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metadata: BTreeMap<String, String>,
    },
    /// The message goes no further.
    Drop {
        /// Why; empty if the hook does not say.
        reason: String,
    },
}

/// Why an answer is no verdict that its entry allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerdictError {
    /// It is no verdict at all.
    #[error("its answer is no verdict: {0}")]
    Shape(String),
    /// The entry does not allow it.
    #[error(
        "its verdict is {verdict}, which it may not: grant it with `may` of its entry, or correct the plugin"
    )]
    NotGranted {
        /// The verdict's word.
        verdict: &'static str,
    },
    /// A field does not belong to the verdict.
    #[error("its verdict is {verdict}, and has {field}, which belongs to {belongs}")]
    Misplaced {
        /// The verdict's word.
        verdict: &'static str,
        /// The field.
        field: &'static str,
        /// The verdicts that have it.
        belongs: &'static str,
    },
    /// There is no new message.
    #[error("its verdict is replace, without a message that says anything")]
    Empty,
    /// The new message is too long.
    #[error("its message has {bytes} bytes, and {MAX_REPLACEMENT_BYTES} are the most")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The metadata passes a limit.
    #[error("its metadata has {0}")]
    Metadata(String),
}

impl VerdictKind {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Annotate => "annotate",
            Self::Replace => "replace",
            Self::Drop => "drop",
        }
    }
}

impl HookVerdict {
    /// Reads a verdict.
    ///
    /// # Errors
    /// [`VerdictError::Shape`], which repeats little of the answer.
    pub fn parse(structured: &Value) -> Result<Self, VerdictError> {
        Self::deserialize(structured).map_err(|error| {
            const MOST: usize = 200;
            VerdictError::Shape(error.to_string().chars().take(MOST).collect())
        })
    }

    /// What becomes of it, if the entry allows it.
    ///
    /// # Errors
    /// [`VerdictError`]: it counts as the hook's failure.
    pub fn judge(self, role: Role, entry: &HookEntry) -> Result<VerdictOutcome, VerdictError> {
        let Self { verdict: kind, message, metadata, reason } = self;
        let verdict = kind.as_str();
        let needed = match kind {
            VerdictKind::Pass => None,
            VerdictKind::Annotate => Some(Effect::Annotate),
            VerdictKind::Replace => Some(Effect::Replace),
            VerdictKind::Drop => Some(Effect::Drop),
        };
        let granted = needed.is_none_or(|effect| entry.may(effect));
        if !granted || (kind == VerdictKind::Replace && role == Role::Filter) {
            return Err(VerdictError::NotGranted { verdict });
        }
        if message.is_some() && kind != VerdictKind::Replace {
            return Err(VerdictError::Misplaced { verdict, field: "a message", belongs: "replace" });
        }
        if !metadata.is_empty() {
            if matches!(kind, VerdictKind::Pass | VerdictKind::Drop) {
                return Err(VerdictError::Misplaced {
                    verdict,
                    field: "metadata",
                    belongs: "annotate and replace",
                });
            }
            if kind == VerdictKind::Replace && !entry.may(Effect::Annotate) {
                return Err(VerdictError::NotGranted { verdict: "annotate" });
            }
            check_metadata(&metadata)?;
        }
        Ok(match kind {
            VerdictKind::Pass => VerdictOutcome::Pass,
            VerdictKind::Annotate => VerdictOutcome::Annotate { metadata },
            VerdictKind::Drop => {
                VerdictOutcome::Drop { reason: cut(reason.unwrap_or_default(), MAX_REASON_CHARS) }
            }
            VerdictKind::Replace => {
                let message = message.filter(|text| !text.trim().is_empty()).ok_or(VerdictError::Empty)?;
                if message.len() > MAX_REPLACEMENT_BYTES {
                    return Err(VerdictError::TooLong { bytes: message.len() });
                }
                VerdictOutcome::Replace { message, metadata }
            }
        })
    }
}

impl VerdictOutcome {
    /// The verdict's word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Pass => VerdictKind::Pass.as_str(),
            Self::Annotate { .. } => VerdictKind::Annotate.as_str(),
            Self::Replace { .. } => VerdictKind::Replace.as_str(),
            Self::Drop { .. } => VerdictKind::Drop.as_str(),
        }
    }
}

/// Whether this can be a key of metadata.
#[must_use]
pub(crate) fn is_metadata_key(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !key.is_empty() && key.len() <= MAX_METADATA_KEY_CHARS && key.chars().all(plain)
}

fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), VerdictError> {
    if metadata.len() > MAX_METADATA_KEYS {
        let most = format!("{} keys, and {MAX_METADATA_KEYS} are the most", metadata.len());
        return Err(VerdictError::Metadata(most));
    }
    for (key, value) in metadata {
        if !is_metadata_key(key) {
            let shown: String = key.chars().take(MAX_METADATA_KEY_CHARS).collect();
            return Err(VerdictError::Metadata(format!(
                "the key {shown:?}: use 1 to {MAX_METADATA_KEY_CHARS} characters of a-z, A-Z, 0-9, '_', '-' and '.'"
            )));
        }
        if value.len() > MAX_METADATA_VALUE_BYTES {
            let most =
                format!("{} bytes under {key}, and {MAX_METADATA_VALUE_BYTES} are the most", value.len());
            return Err(VerdictError::Metadata(most));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
