//! Analyzes the code of one directory, and stores proposals to change it: one half of "analyze the code, file an issue,
//! propose a change". The other half is `tracker`; the two do not know each other, only a caller of both connects them.

mod analyze;
mod proposals;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::Deserialize;
use talon_sdk::{OrToolError, Plugin, ToolError};

/// The plugin's settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The directory with the code.
    root: PathBuf,
}

/// The opened directory; it gives no access to anything outside.
#[derive(Debug)]
struct Root(Dir);

async fn open(config: Config) -> Result<Root, ToolError> {
    let shown = config.root.display();
    let dir = Dir::open_ambient_dir(&config.root, ambient_authority());
    dir.map(Root).or_tool_error_with(|| format!("config: root {shown} is no directory that can be opened"))
}

fn main() -> ExitCode {
    Plugin::new("forge")
        .description("Looks code over and keeps proposals to change it.")
        .tools([
            analyze::analyze_code(),
            proposals::create_pr().destructive(false),
            proposals::list_prs(),
            proposals::get_pr(),
        ])
        .init(open)
        .serve()
}
