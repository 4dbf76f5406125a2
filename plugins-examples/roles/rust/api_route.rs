//! An API route: greets who asks.

use std::process::ExitCode;

use talon_sdk::{ApiRequest, ApiResponse, Plugin, ToolError};

/// Greets who asks.
#[talon_sdk::api_route(read_only)]
async fn reply(asked: ApiRequest) -> Result<ApiResponse, ToolError> {
    Ok(ApiResponse::text(200, format!("Hello, {}!", asked.subject)))
}

fn main() -> ExitCode {
    Plugin::new("hello").description("Answers requests.").tool(reply()).serve()
}
