//! What comes up the stack: four types, one for each step of trust.
//!
//! [`RawAnswer`] (bytes off the wire) → [`Answer`] (valid, text untouched) →
//! [`SanitizedAnswer`](crate::SanitizedAnswer) (text inert) → [`Guarded`](crate::Guarded) (wrapped, ready for a model).
//! The later two have no public constructor and live beside the one layer that makes them, so that nothing reaches a
//! prompt without having passed it.

use bytes::Bytes;
use talon_sanitize::Raw;

use crate::digest::Digest;
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

/// A valid answer whose text nobody has looked at yet, which is why it cannot be shown:
///
/// ```compile_fail
/// # fn answer() -> talon_guard::Answer { unimplemented!() }
/// println!("{}", answer().content);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How the call ended.
    pub outcome: Outcome,
    /// The tool's text.
    pub content: Raw<'static>,
    /// Why the tool, a layer or the host said no; empty when nobody did.
    pub error: Raw<'static>,
    /// JSON text, or empty.
    pub structured_content: Raw<'static>,
    /// The digest of the message it was read from. None if there was no message, that is if the host itself speaks.
    pub digest: Option<Digest>,
    /// The plugin that wrote the text, where that is not the one that was called: a core action that reads on in
    /// another's answer says so here.
    pub written_by: Option<String>,
}

impl Answer {
    /// A tool's answer that did not come as a protobuf message: for hosts with another wire.
    #[must_use]
    pub fn of_tool(content: impl Into<Raw<'static>>) -> Self {
        Self { content: content.into(), ..Self::empty(Outcome::Ok) }
    }

    /// The host's own words: a refusal or a fault.
    #[must_use]
    pub fn of_host(outcome: Outcome, error: impl Into<Raw<'static>>) -> Self {
        Self { error: error.into(), ..Self::empty(outcome) }
    }

    fn empty(outcome: Outcome) -> Self {
        let nothing = || Raw::from("");
        Self {
            outcome,
            content: nothing(),
            error: nothing(),
            structured_content: nothing(),
            digest: None,
            written_by: None,
        }
    }

    /// Whether a plugin wrote text in it: it answered, or it failed with words of its own. What the host says may quote
    /// a caller, and then it says nothing about the plugin.
    pub(crate) fn is_of_plugin(&self) -> bool {
        self.digest.is_some() || is_of_plugin(&self.outcome)
    }
}

/// The same by outcome alone.
pub(crate) fn is_of_plugin(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Ok | Outcome::ToolError) || outcome.reason() == reason::PLUGIN_ERROR
}
