//! Takes on a plugin's file system rights while its socket is connected to.
//!
//! A plugin's directories are private (0700), and the plugin controls their content. Root could enter with
//! CAP_DAC_OVERRIDE, but would then follow the plugin anywhere. So the connecting thread temporarily has
//! exactly the plugin's rights over files: what the plugin may not reach, it cannot redirect the supervisor
//! to. The thread's identity stays the same, and so does the peer that the kernel reports to the plugin.

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

/// Restores the rights on drop, also in a panic. They belong to one thread, so nothing may await meanwhile.
struct FsRightsGuard;

/// Runs `act` with the file system rights of `uid`; the gid is the same number unless `uid` is the
/// supervisor's own.
pub(super) fn with_rights_of<T>(uid: u32, act: impl FnOnce() -> T) -> T {
    if uid == Uid::effective().as_raw() {
        return act();
    }
    // If a change fails, the supervisor's own rights apply: in the worst case the kernel refuses the access.
    setfsgid(Gid::from_raw(uid));
    setfsuid(Uid::from_raw(uid));
    let _borrowed = FsRightsGuard;
    act()
}

impl Drop for FsRightsGuard {
    fn drop(&mut self) {
        // Every process may return to its own effective ids.
        setfsuid(Uid::effective());
        setfsgid(Gid::effective());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    // Promises: UNIT-10
    #[test]
    fn what_is_done_meanwhile_is_done_as_the_plugin_and_nothing_afterwards() {
        if !Uid::effective().is_root() {
            println!(
                "SKIPPED what_is_done_meanwhile_is_done_as_the_plugin_and_nothing_afterwards: only root is anybody"
            );
            return;
        }
        let dir = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let owner =
            |name: &str| dir.path().join(name).metadata().map(|made| (made.uid(), made.gid())).unwrap();
        with_rights_of(70_123, || {
            std::fs::write(dir.path().join("meanwhile"), "").unwrap();
            assert!(std::fs::read("/etc/shadow").is_err());
        });
        std::fs::write(dir.path().join("after"), "").unwrap();
        assert_eq!((owner("meanwhile"), owner("after")), ((70_123, 70_123), (0, 0)));
        let panicked = std::panic::catch_unwind(|| with_rights_of(70_123, || panic!("as planned")));
        assert!(panicked.is_err() && std::fs::read("/etc/shadow").is_ok());
    }
}
