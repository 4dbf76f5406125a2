//! Gives the program its own session keyring.
//!
//! The kernel finds keys (of encrypted file systems, Kerberos tickets, network shares) through the keyrings
//! of a process: the session's, which is inherited, and the user's, which all processes of one uid share.

use nix::unistd::Uid;

use super::limits;
use super::request::Plan;
use super::step_error::StepError;
use crate::report::Status;
use crate::sys;

/// Replaces the supervisor's session keyring by a new one. Done after the uid change, so that the program
/// owns the new one.
pub(super) fn join_new_session(plan: &Plan) -> Result<Option<Status>, StepError> {
    let status = match sys::keyring::join_new_session() {
        Ok(_) if limits::has_own_user_count(plan) => Status::Enforced,
        Ok(_) => Status::StandIn(format!(
            "its session keyring is its own, the one of uid {} it shares (give it a uid of its own)",
            Uid::current()
        )),
        Err(error) => match error.raw_os_error() {
            // A kernel without keyrings: there are no keys.
            Some(libc::ENOSYS) => Status::Enforced,
            // Filters are inherited, and a key cannot be read without this call.
            Some(libc::EPERM) => {
                Status::StandIn("a filter around the supervisor forbids everybody to read keys".into())
            }
            _ => {
                return Err(StepError::io(
                    "cannot leave the supervisor's session keyring",
                    &error,
                    "raise the sysctls kernel.keys.maxkeys and kernel.keys.maxbytes",
                ));
            }
        },
    };
    Ok(Some(status))
}
