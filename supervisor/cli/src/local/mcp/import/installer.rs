//! Runs a package manager.

use std::process::{Command, Stdio};

use super::install_error::InstallError;

/// Redirects the output to stderr.
pub(super) fn run(mut command: Command) -> Result<(), InstallError> {
    let shown = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(std::io::stderr());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(InstallError::Installer { shown, status }),
        Err(error) => Err(InstallError::Start { shown, error }),
    }
}
