//! The directory whose code is analyzed.

use std::path::PathBuf;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::Deserialize;
use talon_sdk::{OrToolError, ToolError};

/// The plugin's settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The directory with the code.
    root: PathBuf,
}

/// The opened directory; it gives no access to anything outside.
#[derive(Debug)]
pub(crate) struct Root(pub(crate) Dir);

/// Opens it.
pub(crate) async fn open(config: Config) -> Result<Root, ToolError> {
    let shown = config.root.display();
    let dir = Dir::open_ambient_dir(&config.root, ambient_authority());
    dir.map(Root).or_tool_error_with(|| format!("config: root {shown} is no directory that can be opened"))
}
