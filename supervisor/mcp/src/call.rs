//! One tool call: `ExecuteStreaming` on `host.sock`, and its outcome as MCP has it.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use talon_client::CallError;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome, Progress};
use tokio::sync::mpsc;

use crate::host::Host;
use crate::tools::Offered;

/// Says why a call ended as it did, for programs: `outcome`, `reason`, `retryable`, `call_id` of `talon.host.v1`.
const META_KEY: &str = "talon/answer";
/// How much of a call's progress waits for a client that is slow, as much as in the supervisor: a second's worth and some.
const PROGRESS_ROOM: usize = 16;

/// Runs a call to its end. `None`: the client does not want it any more, and the supervisor was told by letting go of it.
pub(crate) async fn run(
    host: &Host,
    offered: &Offered,
    request: ExecuteRequest,
    context: &RequestContext<RoleServer>,
) -> Option<CallToolResult> {
    let answered = async {
        match stream(host, request, context).await {
            Ok(answer) => result(offered, answer),
            Err(error) => refused(&host.explain_call(&error)),
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => None,
        result = answered => Some(result),
    }
}

async fn stream(
    host: &Host,
    request: ExecuteRequest,
    context: &RequestContext<RoleServer>,
) -> Result<ExecuteResponse, CallError> {
    let token = context.meta.get_progress_token();
    let (tell, mut told) = mpsc::channel(PROGRESS_ROOM);
    let call = async move {
        // What finds no room is left out: progress is a courtesy.
        let mut watched = move |progress: &Progress| drop(tell.try_send(progress.clone()));
        // Apart from the server's own future, which holds one of these for each call.
        Box::pin(host.lasting().execute_watched(request, Some(&mut watched))).await
    };
    let notify = async {
        let mut reached = f64::NEG_INFINITY;
        while let Some(progress) = told.recv().await {
            // MCP wants it to grow; what does not is no progress.
            if let Some(token) = token.clone().filter(|_| progress.progress > reached)
                && let Some(notice) = notice(token, &progress)
            {
                reached = progress.progress;
                // A client that cannot be told will not get the answer either, which is noticed there.
                let _ = context.peer.notify_progress(notice).await;
            }
        }
    };
    // What was told before the answer goes before it.
    let (answer, ()) = tokio::join!(call, notify);
    answer
}

/// `None` for what JSON cannot say.
fn notice(token: ProgressToken, progress: &Progress) -> Option<ProgressNotificationParam> {
    if !progress.progress.is_finite() {
        return None;
    }
    let mut notice = ProgressNotificationParam::new(token, progress.progress);
    notice.total = progress.total.filter(|total| total.is_finite());
    notice.message = (!progress.message.is_empty()).then(|| progress.message.clone());
    Some(notice)
}

/// The answer of the guard as MCP has it. The text is the guarded block, and never the content alone: what a plugin says
/// stands between delimiters that it cannot forge, and the host gives it to a model as it is.
fn result(offered: &Offered, answer: ExecuteResponse) -> CallToolResult {
    let ok = answer.outcome() == Outcome::Ok;
    let meta = meta(&answer);
    let structured: Option<Value> = serde_json::from_str(&answer.structured_content).ok();
    let block = ContentBlock::text(answer.block);
    let mut result = if !ok {
        CallToolResult::error(vec![block])
    } else if offered.keeps_its_promise(structured.as_ref()) {
        let mut result = CallToolResult::success(vec![block]);
        // It stands outside of the delimiters, so it goes only to hosts that were told its form, and read it by that. The
        // block holds it in any case.
        result.structured_content = structured.filter(|_| offered.tool.output_schema.is_some());
        result
    } else {
        let text = format!(
            "{} promises structured content of a form that this answer does not have (it may have been too large). What \
             it said otherwise stands above.",
            offered.tool.name
        );
        CallToolResult::error(vec![block, ContentBlock::text(text)])
    };
    result.meta = Some(meta);
    result
}

fn meta(answer: &ExecuteResponse) -> MetaObject {
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

/// A call that did not come to an answer of the guard's. A model reads results, and of an error of the protocol not a word.
pub(crate) fn refused(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// What a call of a tool gets that is not offered.
pub(crate) fn unknown(name: &str) -> ErrorData {
    let shown: String =
        name.chars().take(talon_client::tool::MAX_NAME_LEN).flat_map(char::escape_default).collect();
    ErrorData::invalid_params(
        format!("Unknown tool: {shown}. List the tools again: plugins may have come, gone or changed."),
        None,
    )
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
