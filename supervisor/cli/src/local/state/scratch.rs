//! Scratch directories and uids for a command's private processes, separate from those of any supervisor.

use std::ops::RangeInclusive;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::failure::Failure;

/// The longest base of the directory: a plugin's socket is below it, and a socket path holds at most 107
/// bytes.
const MAX_BASE_BYTES: usize = 36;

/// A temporary directory with a path that is short enough for sockets.
pub(crate) fn dir() -> Result<TempDir, Failure> {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // Processes that root starts under other uids must be able to reach it, so root's private directories are
    // unsuitable.
    let passable = |dir: &PathBuf| {
        dir.metadata()
            .is_ok_and(|about| about.is_dir() && (!geteuid().is_root() || about.mode() & 0o001 != 0))
    };
    let fits = |dir: &PathBuf| dir.as_os_str().len() <= MAX_BASE_BYTES && passable(dir);
    let base = named.into_iter().chain([std::env::temp_dir()]).find(fits).unwrap_or_else(|| "/tmp".into());
    let mut builder = tempfile::Builder::new();
    builder.prefix("talon-");
    // Processes with other uids need to pass through; the directories below have their own permissions.
    builder.permissions(PermissionsExt::from_mode(0o711));
    builder.tempdir_in(&base).map_err(|error| {
        Failure::failed(format!("cannot make a directory below {}: {error}", base.display()))
    })
}

/// Uids for this process's plugin and its state service. A supervisor on this machine allocates from the
/// lower end of the range, so these come from the upper half.
pub(crate) fn uids(range: &RangeInclusive<u32>, pid: u32) -> RangeInclusive<u32> {
    let pairs = ((range.end() - range.start()) / 4).max(1);
    let last = range.end() - 2 * (pid % pairs);
    last.saturating_sub(1).max(*range.start())..=last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_uids_are_in_the_upper_half_of_the_range() {
        for pid in [0, 1, 2499, 2500, u32::MAX] {
            let uids = uids(&(70_000..=79_999), pid);
            assert!(*uids.start() >= 75_000 && *uids.end() <= 79_999, "{uids:?}");
            assert_eq!(uids.count(), 2);
        }
        assert_eq!(uids(&(5..=5), 7), 5..=5);
    }
}
