//! Opening the host's files so that nobody can turn a path of the operator's into another one.
//!
//! The supervisor has followed the links that may be followed ([`View::resolve`](crate::View::resolve)): it sees
//! whose they are, while in a user namespace of ours most uids look like one. What is a link by now was planted.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::CWD;
use rustix::io::Errno;

use super::super::step::StepError;

/// Opens a path that no link is on; one that is there is [`Errno::LOOP`].
pub(in super::super) fn plainly(path: &Path) -> Result<OwnedFd, Errno> {
    crate::plainly::open(CWD, path)
}

/// Whether a file is not there for the program: missing, out of reach, or behind a link that is not followed.
pub(in super::super) fn is_absence(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP)
}

pub(super) fn explain(path: &Path, errno: Errno) -> StepError {
    let advice = match errno {
        Errno::NOENT | Errno::NOTDIR => "create it, or take it out of the plugin's grants",
        Errno::ACCESS => "the supervisor must be allowed to enter each directory above it",
        Errno::LOOP => {
            "a link on its way leads in a circle, or was put there just now; grant the path that it should lead to"
        }
        _ => "correct the plugin's grants",
    };
    StepError::errno(&format!("cannot show {}", path.display()), errno.raw_os_error(), advice)
}
