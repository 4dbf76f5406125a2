//! Errors of mounting.

use rustix::io::Errno;

use super::super::step_error::StepError;

/// The advice when the kernel refuses a mount that it should allow.
pub(super) const MOUNT_ADVICE: &str = "does a system call filter, AppArmor or SELinux forbid mounting? allow fsopen, \
                            fsmount, open_tree, move_mount, mount_setattr and pivot_root; Linux 5.12 or newer \
                            is needed";

/// Makes the error for a refused step of mounting.
pub(super) fn failed(what: &'static str) -> impl Fn(Errno) -> StepError {
    move |errno| StepError::errno(what, errno.raw_os_error(), MOUNT_ADVICE)
}
