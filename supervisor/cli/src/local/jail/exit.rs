//! The exit codes of `talon jail run`, as in env(1), timeout(1) and shells: the command's own, or one that
//! says why there is none.

use talon_jail::{ExitStatus, SpawnError};
use talon_sanitize::sanitized;

use crate::failure::Failure;
use crate::line::sanitized_line;
use crate::output::write_stderr;

/// The jail failed.
pub(crate) const JAIL_FAILED: u8 = 125;
/// The command was found but cannot be executed.
pub(super) const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub(crate) const NOT_FOUND: u8 = 127;
/// A command that was ended by a signal exits with this plus the signal's number, as in a shell.
const BY_SIGNAL: i32 = 128;

/// Why the command was not run.
pub(super) fn spawn_failure(error: &SpawnError) -> Failure {
    let code = match error {
        SpawnError::Step { step, .. } if step == "program" => NOT_EXECUTABLE,
        _ => JAIL_FAILED,
    };
    Failure::new(code, format!("the command was not run: {error}"))
}

/// Converts the command's exit status to our exit code.
pub(crate) fn code(status: ExitStatus) -> Result<u8, Failure> {
    let code = match status {
        ExitStatus::Code(code) => code,
        ExitStatus::Signal { signal, .. } => BY_SIGNAL + signal,
        // The kernel's out-of-memory killer sends SIGKILL as well.
        ExitStatus::OutOfMemory { .. } | ExitStatus::TooManyLocks { .. } | ExitStatus::Unwatched { .. } => {
            let advice = if matches!(status, ExitStatus::OutOfMemory { .. }) {
                "; allow more with --memory"
            } else {
                ""
            };
            write_stderr(sanitized!("talon: {}{}", sanitized_line(status), advice), false);
            BY_SIGNAL + nix::sys::signal::Signal::SIGKILL as i32
        }
        ExitStatus::MonitorLost => {
            return Err(Failure::new(
                JAIL_FAILED,
                "it is unknown how the command ended, because its monitor was killed; all its processes were killed then",
            ));
        }
    };
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_become_codes_as_in_a_shell() {
        assert_eq!(code(ExitStatus::Code(3)).unwrap(), 3);
        assert_eq!(code(ExitStatus::Signal { signal: 9, core_dumped: false }).unwrap(), 137);
        assert_eq!(code(ExitStatus::OutOfMemory { bytes: 2, limit: 1 }).unwrap(), 137);
        assert_eq!(code(ExitStatus::MonitorLost).unwrap_err().code(), JAIL_FAILED);
    }
}
