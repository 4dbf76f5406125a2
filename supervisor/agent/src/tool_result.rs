//! The result of a call, as the loop counts it and the model sees it.

use serde::{Deserialize, Serialize};
use talon_sanitize::MarkedSpan;

use crate::media::PluginImages;

/// The name under which calls of tools that were never offered are counted together: if each name counted
/// separately, a model that makes up a new name each time would never reach the limit. The space makes it
/// different from any tool's name.
pub const NEVER_OFFERED: &str = "tools that do not exist";

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call's outcome, as the host reports it. It is not guessed from words like "failed" in the text,
    /// which a page about failures contains, too.
    pub outcome: CallOutcome,
    /// The text for the model: the guarded block, or a message of the agent.
    pub block: String,
    /// The tool's output without its envelope, for comparing results: delimiters may contain a nonce and the
    /// call's id, so that no two blocks would be equal.
    pub output: String,
    /// What comes with the result and is for no model.
    pub provenance: Provenance,
}

/// What the supervisor sends with a result besides its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// What marked pieces of the text were before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub originals: Vec<MarkedSpan>,
    /// An encoded [`talon_proto::host::Receipt`] in hex: the supervisor's statement that it made the call.
    /// Empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub receipt: String,
    /// The arguments as they were sent, as JSON, if they are not what the model wrote: a piece got its original
    /// back. Only `sha256:` and their digest if they
    /// have more than [`MAX_ARGUMENTS_BYTES`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
    /// The images that the tool returned, for models that can look at them.
    #[serde(default, skip_serializing_if = "PluginImages::is_empty")]
    pub images: PluginImages,
    /// How long the call took; 0 for one that was not made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub duration_ms: u64,
    /// Whether a limit left anything out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub truncated: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The largest arguments that are stored beside a result, which shares a megabyte with them.
pub const MAX_ARGUMENTS_BYTES: usize = 64 << 10;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// The tool succeeded.
    Succeeded,
    /// The tool failed, was not allowed, or its arguments did not fit.
    Failed,
    /// There is no such tool.
    NotOffered,
    /// Not run, because the answer has more calls than may run at once. Not an error.
    OverTheLimit,
    /// Not run here: the tool is the client's, who makes the call and brings the result.
    HandedOver,
}
