//! Where commands run.

use std::path::PathBuf;

use serde::Deserialize;
use talon_sdk::{OrToolError, ToolError};

/// The plugin's settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The directory that commands start in; `scratch` below the place for temporary files unless given.
    pub(crate) directory: Option<PathBuf>,
}

/// The directory that commands start in.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) directory: PathBuf,
}

impl Scratch {
    pub(crate) fn open(config: Config) -> Result<Self, ToolError> {
        let directory = match config.directory {
            Some(directory) => directory,
            None => {
                let directory = std::env::temp_dir().join("scratch");
                std::fs::create_dir_all(&directory).or_tool_error("the scratch directory cannot be made")?;
                directory
            }
        };
        let shown = directory.display();
        let is_directory =
            directory.metadata().or_tool_error_with(|| format!("config: cannot use {shown}"))?.is_dir();
        if !is_directory {
            return Err(ToolError::new(format!("config: {shown} is no directory")));
        }
        Ok(Self { directory })
    }
}
