//! Makes results from a host's answers.

use prost::Message as _;
use talon_guard::{Guarded, Outcome as GuardOutcome, Sanitizer, Wrapped};
use talon_proto::host::{ExecuteResponse, Outcome};
use talon_sanitize::MarkedSpan;

use crate::tool_result::{CallOutcome, Provenance, ToolResult};

/// The result for an answer that is no guarded block. The supervisor sends none; but the agent cannot know
/// what else is behind the socket, and only a block may reach a prompt.
const NO_BLOCK: &str = "error: the answer was not a guarded block and is withheld";

/// The result of a host call.
#[must_use]
pub fn from_host(response: &ExecuteResponse, sanitizer: &Sanitizer) -> ToolResult {
    let Some(block) = Wrapped::parse(&response.block, sanitizer) else { return denied(NO_BLOCK) };
    let ran = if response.outcome() == Outcome::Ok { CallOutcome::Succeeded } else { CallOutcome::Failed };
    // A separator that no field can contain: sanitized text has no NUL.
    let said =
        [&response.content, &response.error, &response.structured_content].map(String::as_str).join("\0");
    let provenance = Provenance {
        originals: response.neutralized.iter().map(span).collect(),
        receipt: response
            .receipt
            .as_ref()
            .map(|receipt| hex::encode(receipt.encode_to_vec()))
            .unwrap_or_default(),
        arguments: String::new(),
        ..Provenance::default()
    };
    ToolResult { outcome: ran, block: block.into_string(), output: said, provenance }
}

fn span(span: &talon_proto::host::MarkedSpan) -> MarkedSpan {
    MarkedSpan { marked: span.marked.clone(), original: span.original.clone() }
}

/// The result of a call that was not made or whose answer is not shown, as a message of the agent: denied by
/// the user, host missing.
#[must_use]
pub fn denied(words: &str) -> ToolResult {
    ToolResult {
        outcome: CallOutcome::Failed,
        block: words.to_owned(),
        output: words.to_owned(),
        provenance: Provenance::default(),
    }
}

/// The result of a built-in call, wrapped by the agent's own guard.
#[must_use]
pub fn from_builtin(guarded: Guarded) -> ToolResult {
    let parts = guarded.into_parts();
    let ran = if parts.outcome == GuardOutcome::Ok { CallOutcome::Succeeded } else { CallOutcome::Failed };
    let said = [parts.content.as_str(), parts.error.as_str(), parts.structured_content.as_str()].join("\0");
    ToolResult {
        outcome: ran,
        block: parts.block.into_string(),
        output: said,
        provenance: Provenance::default(),
    }
}
