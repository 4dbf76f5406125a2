//! Opens the host's files so that no one else can redirect a path of the operator.
//!
//! The supervisor has resolved the trusted links ([`View::resolve`](crate::View::resolve)): it sees the
//! owners of links, while in our user namespace most uids look the same. A link that is found here is
//! therefore untrusted.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;

use super::super::step_error::StepError;

/// Opens a path without links; a link fails with [`Errno::LOOP`].
pub(in super::super) fn no_follow(path: &Path) -> Result<OwnedFd, Errno> {
    crate::no_follow::open(CWD, path)
}

/// Whether the program cannot have a file: it is missing, out of reach, or behind a link that is not
/// followed.
pub(in super::super) fn is_absence(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP)
}

pub(super) fn explain(path: &Path, errno: Errno) -> StepError {
    let advice = match errno {
        Errno::NOENT | Errno::NOTDIR => "create it, or take it out of the plugin's grants",
        Errno::ACCESS => "the supervisor must be allowed to enter each directory above it",
        Errno::LOOP => {
            "a link in it leads in a circle, or was put there just now; grant the path that it should lead to"
        }
        _ => "correct the plugin's grants",
    };
    StepError::errno(&format!("cannot show {}", path.display()), errno.raw_os_error(), advice)
}
