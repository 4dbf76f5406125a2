//! A place for what a command needs while it runs, and uids for who works there: nothing of it is a supervisor's.

use std::ops::RangeInclusive;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::process::geteuid;
use tempfile::TempDir;

use super::super::failure::Failure;

/// The longest place for the directory: a plugin's socket lies below, and its path holds at most 107 bytes.
const MAX_BASE_BYTES: usize = 36;

/// A directory of our own, short enough for sockets, which goes with all it holds.
pub(in crate::cli) fn dir() -> Result<TempDir, Failure> {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // As root we start others, who have to get there: root's own directories are no place for them.
    let passable = |dir: &PathBuf| {
        dir.metadata()
            .is_ok_and(|about| about.is_dir() && (!geteuid().is_root() || about.mode() & 0o001 != 0))
    };
    let fits = |dir: &PathBuf| dir.as_os_str().len() <= MAX_BASE_BYTES && passable(dir);
    let base = named.into_iter().chain([std::env::temp_dir()]).find(fits).unwrap_or_else(|| "/tmp".into());
    let mut builder = tempfile::Builder::new();
    builder.prefix("talon-");
    // A process with a uid of its own must be able to pass through; what is below is protected by itself.
    builder.permissions(PermissionsExt::from_mode(0o711));
    builder.tempdir_in(&base).map_err(|error| {
        Failure::failed(format!("cannot make a directory below {}: {error}", base.display()))
    })
}

/// Uids for the plugin of this process and for what keeps state, far from those that a supervisor on this machine
/// hands out: that one begins at the lower end, so these come from the upper half.
pub(in crate::cli) fn uids(range: &RangeInclusive<u32>, pid: u32) -> RangeInclusive<u32> {
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
