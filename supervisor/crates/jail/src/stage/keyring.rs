//! A session keyring of the program's own.
//!
//! The kernel finds keys (of encrypted file systems, Kerberos tickets, network shares) through the keyrings of a
//! process: the session's, which is inherited, and the user's, which all that runs as one uid has in common.

use nix::unistd::Uid;

use super::limits;
use super::request::Plan;
use super::step::StepError;
use crate::report::Status;
use crate::sys;

/// Leaves the supervisor's session keyring for a new one. After the uid change, so that the new one is the
/// program's.
pub(super) fn own(plan: &Plan) -> Result<Option<Status>, StepError> {
    let status = match sys::keyring::join_new_session() {
        Ok(_) if limits::counted_alone(plan) => Status::Enforced,
        Ok(_) => Status::StandIn(format!(
            "its session keyring is its own, the one of uid {} it shares (give it a uid of its own)",
            Uid::current()
        )),
        Err(error) => match error.raw_os_error() {
            // A kernel without keyrings: nobody has a key there.
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
