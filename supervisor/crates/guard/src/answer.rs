//! What comes up the stack: four types, one for each step of trust.
//!
//! [`RawAnswer`] (bytes off the wire) → [`Answer`] (valid, text untouched) → [`Sanitized`](crate::Sanitized)
//! (text inert) → [`Guarded`](crate::Guarded) (wrapped, ready for a model). The later two have no public
//! constructor and live beside the one layer that makes them, so that nothing reaches a prompt without having
//! passed it.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::reason;

/// A plugin's answer as it came off the wire: the undecoded protobuf message of `ToolResultResponse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAnswer(pub Bytes);

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The tool answered.
    Ok,
    /// The tool said no, which is data.
    ToolError,
    /// A layer said no.
    Refused {
        /// A word of [`reason`].
        reason: &'static str,
        /// Whether the same call may succeed a little later.
        retryable: bool,
    },
    /// The plugin died, timed out or was not there; or Talon itself is at fault (`internal`).
    HostFault {
        /// A word of [`reason`].
        reason: &'static str,
        /// Whether the same call may succeed a little later.
        retryable: bool,
    },
}

impl Outcome {
    /// The word for logs and metrics: `ok`, `tool_error`, `refused` or `host_fault`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Refused { .. } => "refused",
            Self::HostFault { .. } => "host_fault",
        }
    }

    /// Why the call did not end well: a word of [`reason`], empty for [`Outcome::Ok`].
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Ok => "",
            Self::ToolError => reason::TOOL_ERROR,
            Self::Refused { reason, .. } | Self::HostFault { reason, .. } => reason,
        }
    }

    /// Whether the same call may succeed a little later. What a tool answered is not for the host to judge.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Refused { retryable: true, .. } | Self::HostFault { retryable: true, .. })
    }
}

/// A valid answer whose text nobody has looked at yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How the call ended.
    pub outcome: Outcome,
    /// The tool's text.
    pub content: String,
    /// Why the tool, a layer or the host said no; empty when nobody did.
    pub error: String,
    /// JSON text, or empty.
    pub structured_content: String,
}

/// What the guard did to one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes of text that reached the sanitizer, over all fields.
    pub bytes_in: usize,
    /// Bytes of text that came out, over all fields, notices included, without the envelope.
    pub bytes_out: usize,
    /// Bytes that a size limit left out, over all fields.
    pub bytes_left_out: usize,
    /// Whether structured content did not parse and was moved into `content` as text.
    pub structured_as_text: bool,
    /// How often control syntax of each family was made inert.
    pub neutralised: BTreeMap<&'static str, u32>,
}
