//! Finds the `talon-gateway` program.

use std::path::{Path, PathBuf};

use crate::program_lookup::{self, NotInstalledError};

/// The program was not found.
#[derive(Debug, thiserror::Error)]
#[error("{0}, or set gateway.program, or run without the gateway (gateway.enabled: false)")]
pub struct ProgramNotFoundError(#[from] NotInstalledError);

/// The program that the configuration names, or the one installed with this `talon`.
///
/// # Errors
/// [`ProgramNotFoundError`] states where it was searched.
pub fn find(configured: Option<&Path>) -> Result<PathBuf, ProgramNotFoundError> {
    Ok(program_lookup::configured_or_installed(configured, "talon-gateway")?)
}
