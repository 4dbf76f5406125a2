//! One call of a tool.

use std::collections::BTreeMap;

use talon_sdk::{Context, Output, Tool, ToolError};

use super::arguments::ServerArguments;
use super::offer::OfferedTool;
use super::run::Run;
use crate::elicitation::ParkedCalls;
use crate::server_handle::ServerHandle;

/// An SDK tool for an offered tool.
pub(crate) fn tool(offer: OfferedTool, server: ServerHandle, parked: ParkedCalls<Run>) -> Tool {
    let OfferedTool { tool, action, reader } = offer;
    Tool::dynamic(action, move |args: BTreeMap<String, String>, cx: Context| {
        let (tool, server, parked) = (tool.clone(), server.clone(), parked.clone());
        let read = reader.read(&args, cx.arguments()).map_err(|error| ToolError::new(error.to_string()));
        async move { call(&server, &parked, tool, read?, &cx).await }
    })
}

async fn call(
    server: &ServerHandle,
    parked: &ParkedCalls<Run>,
    tool: String,
    args: ServerArguments,
    cx: &Context,
) -> Result<Output, ToolError> {
    let _under_way = server.sampling.enter(cx.call_id());
    let takes = cx.takes_input_requests();
    let run = match cx.input_response() {
        Some(response) => parked.take(&tool, response)?.resume(response),
        None => Run::new(tool, args, server.questions.enter(takes), takes),
    };
    run.go_on(server, parked, cx).await
}
