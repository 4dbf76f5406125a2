//! Runs one call, from the request message to the response message.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use talon_arguments::Arguments;
use talon_proto::plugin::{ToolCallRequest, ToolResultResponse};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::Instrument;

use crate::context::{Call, ProgressSink, TraceHeaders};
use crate::model::ModelSource;
use crate::notices::PendingNotices;
use crate::output::Parts;
use crate::settings::Settings;
use crate::state::StateSource;
use crate::text::shorten;
use crate::{Output, Tool, ToolError};

/// The largest answer in bytes, all fields together. Hosts stop reading near 8 MiB and discard the whole
/// answer, so an explicit error is more useful. Room for the other fields is left.
pub const MAX_RESULT_BYTES: usize = (8 << 20) - (64 << 10);
/// How much of an unknown action's name is repeated, in bytes.
const MAX_SHOWN_BYTES: usize = 64;

/// What a call needs besides its request message.
pub(crate) struct CallEnvironment {
    pub(crate) settings: Arc<Settings>,
    pub(crate) state: StateSource,
    pub(crate) model: ModelSource,
    pub(crate) board: Arc<PendingNotices>,
    pub(crate) trace: TraceHeaders,
}

/// Runs one call.
///
/// # Errors
/// INTERNAL when the tool panicked. Every other failure is an answer with `error` set.
pub(crate) async fn execute(
    tools: &[Tool],
    request: ToolCallRequest,
    deadline: Option<Instant>,
    host: CallEnvironment,
) -> Result<ToolResultResponse, Status> {
    let ToolCallRequest {
        id,
        action,
        args,
        credential_headers,
        arguments_json,
        takes_input_requests,
        input_response,
        plugin: _,
    } = request;
    let Some(tool) = tools.iter().find(|tool| tool.name() == action) else {
        let known: Vec<&str> = tools.iter().map(Tool::name).collect();
        let shown = shorten(&action, MAX_SHOWN_BYTES);
        return Ok(refusal(id, format!("no action `{shown}`; this plugin has {}", known.join(", "))));
    };
    let arguments = match arguments_json.as_str() {
        "" => None,
        json => match Arguments::parse(json) {
            Ok(arguments) => Some(arguments),
            Err(error) => return Ok(refusal(id, error.to_string())),
        },
    };
    let call = Call {
        id: id.clone(),
        action,
        arguments,
        takes_input_requests,
        input_response,
        deadline,
        cancelled: CancellationToken::new(),
        injected: BTreeMap::new(),
        credentials: credential_headers,
        settings: host.settings,
        state: host.state,
        model: host.model,
        progress: ProgressSink::Host(host.board),
        trace: host.trace,
    };
    let span = tracing::info_span!("call", call_id = id.as_str(), action = tool.name());
    // The span belongs to the future, so that what a tool logs while it is dropped names its call.
    let run = pin!(tool.run(args, call).instrument(span.clone()));
    match catch_panic(run).await {
        Ok(Ok(output)) => Ok(answer(id, output)),
        Ok(Err(error)) => {
            if let Some(chain) = error.chain() {
                span.in_scope(|| tracing::error!(error = %chain, "{error}"));
            }
            Ok(refusal(id, error.message().to_owned()))
        }
        // The panic hook has already logged the panic.
        Err(_) => {
            Err(Status::internal(format!("tool `{}` panicked; the plugin's log says where", tool.name())))
        }
    }
}

fn answer(call_id: String, output: Output) -> ToolResultResponse {
    let Parts { content, structured, media, input_request } = output.into_parts();
    let structured_content = structured.map(|value| value.to_string()).unwrap_or_default();
    let of_media: usize = media.iter().map(prost::Message::encoded_len).sum();
    let total = content.len() + structured_content.len() + of_media;
    if total > MAX_RESULT_BYTES {
        let text = format!(
            "the answer has {total} bytes, more than the {MAX_RESULT_BYTES} that can be sent; ask for less at once"
        );
        return refusal(call_id, text);
    }
    ToolResultResponse { call_id, content, error: String::new(), structured_content, media, input_request }
}

fn refusal(call_id: String, error: String) -> ToolResultResponse {
    let error = shorten(&error, MAX_RESULT_BYTES);
    ToolResultResponse { call_id, error, ..Default::default() }
}

/// Polls a future so that a panic in it ends the call but not the connection.
async fn catch_panic<F>(mut future: Pin<&mut F>) -> Result<Result<Output, ToolError>, Box<dyn Any + Send>>
where
    F: Future<Output = Result<Output, ToolError>>,
{
    std::future::poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
