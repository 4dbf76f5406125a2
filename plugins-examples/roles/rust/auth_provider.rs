//! An auth provider: says whose a token is.

use std::process::ExitCode;

use talon_sdk::{AuthRequest, Authentication, Plugin, ToolError};

/// Whose token it is. Look it up here; nobody is let in before.
fn subject_of(_token: &str) -> Option<String> {
    None
}

/// Says whose a bearer token is.
#[talon_sdk::auth_provider(read_only)]
async fn authenticate(asked: AuthRequest) -> Result<Authentication, ToolError> {
    Ok(match subject_of(&asked.credential) {
        Some(subject) => Authentication::accepted(subject).scope("user"),
        None => Authentication::rejected("no such token"),
    })
}

fn main() -> ExitCode {
    Plugin::new("hello").description("Says whose tokens are.").tool(authenticate()).serve()
}
