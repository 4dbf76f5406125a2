//! The smallest plugin: one action that greets.

use std::process::ExitCode;

use talon_sdk::{Plugin, ToolError};

#[talon_sdk::args]
struct Greet {
    /// Whom to greet.
    name: String,
}

/// Greets somebody by name.
#[talon_sdk::tool(read_only)]
async fn greet(args: Greet) -> Result<String, ToolError> {
    if args.name.trim().is_empty() {
        return Err(ToolError::new("greet whom? give a name"));
    }
    Ok(format!("Hello, {}!", args.name))
}

fn main() -> ExitCode {
    Plugin::new("hello").description("Greets people.").tool(greet()).serve()
}
