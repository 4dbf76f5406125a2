//! Finds the `talon-agent` program.

use std::path::{Path, PathBuf};

use crate::installed::{self, NotInstalled};

/// The program was not found.
#[derive(Debug, thiserror::Error)]
#[error("{0}, or set agent.program, or run without the agent (agent.enabled: false)")]
pub struct NoProgram(#[from] NotInstalled);

/// The program that the configuration names, or the one installed with this `talon`.
///
/// # Errors
/// [`NoProgram`] states where it was searched.
pub fn find(configured: Option<&Path>) -> Result<PathBuf, NoProgram> {
    match configured {
        Some(program) => Ok(program.to_owned()),
        None => Ok(installed::find("talon-agent")?),
    }
}
