//! A host's answer as the result of a call.

use talon_guard::{Guarded, Outcome as GuardOutcome, Sanitizer, Wrapped};
use talon_proto::host::{ExecuteResponse, Outcome};

use crate::loop_context::{Ran, ToolResult};

/// What a model gets instead of something that is no guarded block. A supervisor makes none; what else may stand behind a socket is
/// not known here, and nothing but a block is to reach a prompt.
const NO_BLOCK: &str = "error: the answer was not a guarded block and is withheld";

/// The result of a call that the host was asked for.
#[must_use]
pub fn from_host(response: &ExecuteResponse, sanitizer: &Sanitizer) -> ToolResult {
    let Some(block) = Wrapped::received(&response.block, sanitizer) else { return said_no(NO_BLOCK) };
    let ran = if response.outcome() == Outcome::Ok { Ran::Succeeded } else { Ran::Failed };
    // A separator that no field can hold, for sanitized text has no NUL.
    let said =
        [&response.content, &response.error, &response.structured_content].map(String::as_str).join("\0");
    ToolResult { ran, block: block.into_string(), said }
}

/// The result of a call that was not made or whose answer is not shown, in our own words: denied by the user, host not there.
#[must_use]
pub fn said_no(words: &str) -> ToolResult {
    ToolResult { ran: Ran::Failed, block: words.to_owned(), said: words.to_owned() }
}

/// The result of a call that the agent answered itself, as its own guard has wrapped it.
#[must_use]
pub fn from_own(guarded: Guarded) -> ToolResult {
    let parts = guarded.into_parts();
    let ran = if parts.outcome == GuardOutcome::Ok { Ran::Succeeded } else { Ran::Failed };
    let said = [parts.content.as_str(), parts.error.as_str(), parts.structured_content.as_str()].join("\0");
    ToolResult { ran, block: parts.block.into_string(), said }
}
