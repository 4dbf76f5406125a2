//! Runs one tool call with `ExecuteStreaming` on `host.sock`, and converts its outcome to MCP.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use talon_client::{CallError, CallUpdate};
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome, Progress};
use tokio::sync::mpsc;

use crate::answer_meta::meta;
use crate::call_progress::CallProgress;
use crate::context::prefix_link;
use crate::host::Host;
use crate::media;
use crate::question::{self, AskedUser};
use crate::structured::Structured;
use crate::tools::OfferedTool;

/// Queued progress notifications for a slow client, as many as in the supervisor: a little more than a
/// second's worth.
const PROGRESS_CAPACITY: usize = 16;
/// How often a call may ask its user before it is given up, far more than a person answers.
const MAX_QUESTIONS: usize = 20;

/// Runs a call to its end. `None`: the client cancelled it, and dropping the request has cancelled it at the
/// supervisor.
pub(crate) async fn run(
    host: &Host,
    offered: &OfferedTool,
    structured: Structured,
    request: ExecuteRequest,
    context: &RequestContext<RoleServer>,
) -> Option<CallToolResponse> {
    let answered = async {
        let mut next = request.clone();
        for _ in 0..=MAX_QUESTIONS {
            let answer = match stream(host, next, context).await {
                Ok(answer) => answer,
                Err(error) => return error_result(&host.explain_call(&error)).into(),
            };
            let Some(question) = &answer.input_request else {
                return result(offered, structured, answer).into();
            };
            match question::ask(offered, &answer, question, context).await {
                AskedUser::Answered(response) => {
                    next = ExecuteRequest { input_response: Some(response), ..request.clone() };
                }
                AskedUser::AsResult(question) => return question.into(),
                AskedUser::Impossible(why) => return error_result(&why).into(),
            }
        }
        error_result(&format!("the plugin asked its user {MAX_QUESTIONS} times in one call: it is given up"))
            .into()
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
    let (tell, mut told) = mpsc::channel(PROGRESS_CAPACITY);
    let call = async move {
        // If the queue is full, drop the notification: progress is best-effort.
        let mut progress = CallProgress::default();
        let mut watched = move |update: CallUpdate<'_>| {
            if let Some(progress) = progress.of(update) {
                drop(tell.try_send(progress));
            }
        };
        // Boxed to keep it out of the server's own future, which holds one of these for each call.
        Box::pin(host.reconnecting().execute_watched(request, Some(&mut watched))).await
    };
    let notify = async {
        let mut reached = f64::NEG_INFINITY;
        while let Some(progress) = told.recv().await {
            // MCP requires progress to increase; drop anything else.
            if let Some(token) = token.clone().filter(|_| progress.progress > reached)
                && let Some(notice) = progress_notification(token, &progress)
            {
                reached = progress.progress;
                // If the client is gone, sending the answer will fail as well and be handled there.
                let _ = context.peer.notify_progress(notice).await;
            }
        }
    };
    // Send all progress notifications before the answer.
    let (answer, ()) = tokio::join!(call, notify);
    answer
}

/// `None` for numbers that JSON cannot express.
fn progress_notification(token: ProgressToken, progress: &Progress) -> Option<ProgressNotificationParam> {
    if !progress.progress.is_finite() {
        return None;
    }
    let mut notice = ProgressNotificationParam::new(token, progress.progress);
    notice.total = progress.total.filter(|total| total.is_finite());
    notice.message = (!progress.message.is_empty()).then(|| progress.message.clone());
    Some(notice)
}

/// Converts the guard's answer to MCP. The text is the guarded block, never the bare content: a plugin's
/// output is between delimiters that it cannot forge, and the host passes it to a model unchanged.
fn result(offered: &OfferedTool, structured: Structured, answer: ExecuteResponse) -> CallToolResult {
    let ok = answer.outcome() == Outcome::Ok;
    let meta = meta(&answer);
    let structured = if ok { structured.of(offered, &answer) } else { Ok(None) };
    let mut content = vec![ContentBlock::text(answer.block)];
    let media = answer.media.into_iter();
    let media = media.map(|item| if offered.links_here { prefix_link(&offered.plugin, item) } else { item });
    content.extend(media.filter_map(media::content));
    let mut result = match structured {
        _ if !ok => CallToolResult::error(content),
        Ok(structured) => {
            let mut result = CallToolResult::success(content);
            // It is outside of the delimiters, so it goes only to hosts that know its schema and parse it
            // accordingly. The block contains it in any case.
            result.structured_content = structured;
            result
        }
        Err(()) => {
            let text = format!(
                "{} promises structured content of a form that this answer does not have (it may have been too large). What \
                 it said otherwise stands above.",
                offered.tool.name
            );
            content.push(ContentBlock::text(text));
            CallToolResult::error(content)
        }
    };
    result.meta = Some(meta);
    result
}

/// The result of a call without an answer from the guard. Models see results, but not protocol errors.
pub(crate) fn error_result(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// The error for a call of a tool that is not offered.
pub(crate) fn unknown_tool(name: &str) -> ErrorData {
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
