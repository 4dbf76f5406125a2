//! A plugin's own rights over files, for the moment in which its socket is connected to.
//!
//! Its directories are its own alone (0700), and whatever it puts into them is what it likes. Root would get through with
//! CAP_DAC_OVERRIDE, and with that through everything. So whoever goes there has the plugin's rights over files meanwhile and
//! none of its own: what the plugin may not reach, it cannot lead us to. Who asks stays the same, and what the kernel tells the
//! plugin of its peer.

use nix::unistd::{Gid, Uid, setfsgid, setfsuid};

/// Gives the rights back, also in a panic. They are those of one thread, so that nothing may wait meanwhile.
struct Borrowed;

/// Does something with the rights over files of `uid`, whose gid is the same number where it is not ours.
pub(super) fn with_rights_of<T>(uid: u32, act: impl FnOnce() -> T) -> T {
    if uid == Uid::effective().as_raw() {
        return act();
    }
    // What cannot be taken is not taken, and then our own rights decide: the kernel refuses in the worst case.
    setfsgid(Gid::from_raw(uid));
    setfsuid(Uid::from_raw(uid));
    let _borrowed = Borrowed;
    act()
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // To one's own effective ids everybody may go back.
        setfsuid(Uid::effective());
        setfsgid(Gid::effective());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

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
