//! A hook: notes what is urgent.

use std::process::ExitCode;

use talon_sdk::{HookRequest, Plugin, ToolError, Verdict};

/// Notes that a message is urgent.
#[talon_sdk::request_hook(read_only)]
async fn look(asked: HookRequest) -> Result<Verdict, ToolError> {
    Ok(if asked.message.to_lowercase().contains("urgent") {
        Verdict::annotate("priority", "high")
    } else {
        Verdict::pass()
    })
}

fn main() -> ExitCode {
    Plugin::new("hello").description("Looks at messages.").tool(look()).serve()
}
