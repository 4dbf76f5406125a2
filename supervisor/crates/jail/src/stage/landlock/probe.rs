//! A self-test: something that was possible before, is allowed by no rule, and must fail now. Nothing else
//! would detect a filter that lets the Landlock calls seem to succeed.

use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::io::Errno;

use super::rules::InodeId;
use crate::stage::step_error::StepError;
use crate::view::PROBE_FILE;

/// Directories that are listable on ordinary machines, and that get no rule: a rule for the first would allow
/// everything.
const DIRECTORIES: [&str; 2] = ["/", "/dev"];

/// Chooses which of the candidates to test: those that are accessible now.
pub(super) fn choose(granted: &[InodeId], private_root: bool) -> Result<Vec<&'static str>, StepError> {
    if private_root {
        return match read(PROBE_FILE) {
            Ok(_) => Ok(vec![PROBE_FILE]),
            Err(errno) => {
                let what = format!("cannot read {PROBE_FILE}, by which it is proven");
                Err(StepError::errno(&what, errno.raw_os_error(), "please report this"))
            }
        };
    }
    let mut chosen = Vec::new();
    for directory in DIRECTORIES {
        if read(directory).is_ok_and(|inode| !granted.contains(&inode)) {
            chosen.push(directory);
        }
    }
    if chosen.is_empty() {
        return Err(StepError::new(
            "that it holds cannot be tried, as neither / nor /dev can be listed (allow its uid to list /)",
        ));
    }
    Ok(chosen)
}

/// Tries them again, which must fail.
pub(super) fn prove(chosen: &[&str]) -> Result<(), StepError> {
    for path in chosen {
        match read(path) {
            Err(Errno::ACCESS) => {}
            Ok(_) => {
                return Err(StepError::new(format!(
                    "the kernel says that it holds, but {path} can still be read (does a filter in the \
                     container or service fake landlock_restrict_self? allow it)"
                )));
            }
            Err(errno) => {
                let what = format!("the proof that it holds went wrong at {path}");
                return Err(StepError::errno(&what, errno.raw_os_error(), "try again"));
            }
        }
    }
    Ok(())
}

/// Opens a file as `cat` would, or a directory as `ls`.
fn read(path: &str) -> Result<InodeId, Errno> {
    let opened = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(InodeId::of(&fstat(&opened)?))
}
