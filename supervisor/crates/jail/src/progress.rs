//! The progress of a stage: the name of its current step, in a small memory file that both sides have open.
//!
//! It is read only when a stage hangs or is lost, so it should not cost a packet for each step: each packet
//! would wake the supervisor, some forty times a start.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};

/// The longest name that is kept; all of ours are shorter, and longer ones are cut.
const NAME_BYTES: usize = 32;

/// The step before the stage has set one.
pub(crate) const FIRST_STEP: &str = "start";

/// One side's handle of the file.
#[derive(Debug)]
pub(crate) struct Progress(File);

impl Progress {
    /// For a stage that has not started yet.
    pub(crate) fn new() -> io::Result<Self> {
        let this = Self(memfd_create("talon-jail-progress", MemfdFlags::CLOEXEC)?.into());
        this.begin(FIRST_STEP);
        Ok(this)
    }

    /// The stage's side.
    pub(crate) fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor.into())
    }

    /// Sets the current step. An error is ignored: it only matters if the stage fails later.
    pub(crate) fn begin(&self, step: &str) {
        let mut name = [0; NAME_BYTES];
        for (to, from) in name.iter_mut().zip(step.bytes()) {
            *to = from;
        }
        let _ = self.0.write_all_at(&name, 0);
    }

    /// The step that was set last.
    pub(crate) fn step(&self) -> String {
        let mut name = [0; NAME_BYTES];
        let _ = self.0.read_exact_at(&mut name, 0);
        let name = String::from_utf8_lossy(&name);
        name.trim_end_matches('\0').to_owned()
    }
}

impl AsFd for Progress {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_counts_and_long_names_are_cut() {
        let ours = Progress::new().unwrap();
        let theirs = Progress::from_descriptor(ours.as_fd().try_clone_to_owned().unwrap());
        assert_eq!(ours.step(), FIRST_STEP);
        theirs.begin("a-name-that-is-as-long-as-thirty-two-bytes");
        assert_eq!(ours.step().len(), NAME_BYTES);
        theirs.begin("network");
        assert_eq!(ours.step(), "network");
    }
}
