//! The types of an answer on its way up the stack: four types, one for each level of trust.
//!
//! [`RawAnswer`] (bytes off the wire) → [`Answer`] (valid, text untouched) →
//! [`SanitizedAnswer`](crate::SanitizedAnswer) (text neutralized) → [`Guarded`](crate::Guarded) (wrapped,
//! ready for a model). The last two have no public constructor. Each is made by one layer only, so nothing
//! reaches a prompt without passing that layer.

use bytes::Bytes;
use talon_proto::plugin::{InputRequest, Media};
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
    /// The tool reported an error, which is data.
    ToolError,
    /// A layer refused the call.
    Refused {
        /// One of the constants in [`reason`].
        reason: &'static str,
        /// Whether the same call may succeed a little later.
        retryable: bool,
    },
    /// The plugin died, timed out or was not there; or Talon itself is at fault (`internal`).
    HostFault {
        /// One of the constants in [`reason`].
        reason: &'static str,
        /// Whether the same call may succeed a little later.
        retryable: bool,
    },
}

impl Outcome {
    /// The value in logs and metrics: `ok`, `tool_error`, `refused` or `host_fault`.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Refused { .. } => "refused",
            Self::HostFault { .. } => "host_fault",
        }
    }

    /// Why the call did not succeed: one of the constants in [`reason`], empty for [`Outcome::Ok`].
    #[must_use]
    #[inline]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Ok => "",
            Self::ToolError => reason::TOOL_ERROR,
            Self::Refused { reason, .. } | Self::HostFault { reason, .. } => reason,
        }
    }

    /// Whether the same call may succeed a little later. The host does not judge an error that the tool
    /// reported.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Refused { retryable: true, .. } | Self::HostFault { retryable: true, .. })
    }
}

/// A valid answer whose text is not sanitized yet, which is why it cannot be shown:
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
    /// The error text of the tool, a layer or the host; empty if there is no error.
    pub error: Raw<'static>,
    /// JSON text, or empty.
    pub structured_content: Raw<'static>,
    /// Images, audio, resources and links, as they came.
    pub media: Vec<Media>,
    /// What the plugin asks the caller's user for before it answers: a valid form. The question is the content.
    pub input_request: Option<Box<InputRequest>>,
    /// The digest of the message that it was decoded from. `None` if there was no message: the host itself
    /// answered.
    pub digest: Option<Digest>,
    /// The plugin that wrote the text, if it is not the one that was called: a core action that reads the
    /// rest of another plugin's answer sets this.
    pub written_by: Option<String>,
}

impl Answer {
    /// A tool's answer that did not come as a protobuf message: for hosts with another protocol.
    #[must_use]
    pub fn from_tool(content: impl Into<Raw<'static>>) -> Self {
        Self { content: content.into(), ..Self::empty(Outcome::Ok) }
    }

    /// An answer of the host itself: a refusal or a fault.
    #[must_use]
    pub fn from_host(outcome: Outcome, error: impl Into<Raw<'static>>) -> Self {
        Self { error: error.into(), ..Self::empty(outcome) }
    }

    fn empty(outcome: Outcome) -> Self {
        let nothing = || Raw::from("");
        Self {
            outcome,
            content: nothing(),
            error: nothing(),
            structured_content: nothing(),
            media: Vec::new(),
            input_request: None,
            digest: None,
            written_by: None,
        }
    }

    /// Whether a plugin wrote text in it: it answered, or it failed with an error text. An error of the host
    /// may quote a caller, so it does not count against the plugin.
    #[inline]
    pub(crate) fn is_from_plugin(&self) -> bool {
        self.digest.is_some() || is_from_plugin(&self.outcome)
    }
}

/// The same, decided by the outcome alone.
pub(crate) fn is_from_plugin(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Ok | Outcome::ToolError) || outcome.reason() == reason::PLUGIN_ERROR
}
