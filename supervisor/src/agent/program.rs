//! Finds the `talon-agent` program.

use std::path::{Path, PathBuf};

use crate::program_lookup::{self, NotInstalledError};

/// The program was not found.
#[derive(Debug, thiserror::Error)]
#[error("{0}, or set agent.program, or run without the agent (agent.enabled: false)")]
pub struct ProgramNotFoundError(#[from] NotInstalledError);

/// The program that the configuration names, or the one installed with this `talon`.
///
/// # Errors
/// [`NoProgram`] states where it was searched.
pub fn find(configured: Option<&Path>) -> Result<PathBuf, ProgramNotFoundError> {
    match configured {
        Some(program) => Ok(program.to_owned()),
        None => Ok(program_lookup::find("talon-agent")?),
    }
}
