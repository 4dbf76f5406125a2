//! Finds the `talon-state` program.

use std::path::{Path, PathBuf};

use crate::program_lookup::{self, NotInstalledError};

/// The program was not found.
#[derive(Debug, thiserror::Error)]
#[error("{0}, or set state.program, or run without state (state.engine: off)")]
pub struct ProgramNotFoundError(#[from] NotInstalledError);

/// The program that the configuration names, or the one installed with this `talon`.
///
/// # Errors
/// [`ProgramNotFoundError`] states where it was searched.
pub fn find(configured: Option<&Path>) -> Result<PathBuf, ProgramNotFoundError> {
    Ok(program_lookup::configured_or_installed(configured, "talon-state")?)
}
