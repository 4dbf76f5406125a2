//! What is said beside an answer, for programs.

use rmcp::model::MetaObject;
use serde_json::json;
use talon_proto::host::{ExecuteResponse, Outcome};

/// Machine-readable details of the outcome: `outcome`, `reason`, `retryable`, `call_id` of `talon.host.v1`.
pub(crate) const META_KEY: &str = "talon/answer";

/// What is said beside this answer.
pub(crate) fn meta(answer: &ExecuteResponse) -> MetaObject {
    let outcome = match answer.outcome() {
        Outcome::Ok => "ok",
        Outcome::ToolError => "tool_error",
        Outcome::Refused => "refused",
        Outcome::HostFault => "host_fault",
        Outcome::Unspecified => "unspecified",
    };
    let mut about = json!({ "outcome": outcome, "call_id": answer.call_id });
    if answer.outcome() != Outcome::Ok {
        about["reason"] = json!(answer.reason);
        about["retryable"] = json!(answer.retryable);
    }
    let mut meta = MetaObject::new();
    meta.insert(META_KEY.to_owned(), about);
    meta
}
