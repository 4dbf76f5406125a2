//! The mounts of a stage that is made ahead: its own file, as it changes the mounts of the process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use talon_jail::{Access, BindMount, InheritedFds, spawn};

#[test]
fn it_sees_what_was_mounted_after_it_was_made_and_holds_nothing() {
    if skipped_without_root("it_sees_what_was_mounted_after_it_was_made_and_holds_nothing") {
        return;
    }
    // In a mount namespace without propagation.
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
    let stage = stage().with_standby();
    let place = tempfile::tempdir().unwrap();
    let mut wanted = isolated(sh("cat /shown/file; echo"));
    let shown =
        BindMount { at: "/shown".into(), from: place.path().into(), access: Access::Read, needed: true };
    wanted.isolation.as_mut().unwrap().view.shown.push(shown);
    finish(spawn(&stage, &wanted, &InheritedFds::default(), LONG).unwrap());

    mount("none", place.path(), "tmpfs", MountFlags::empty(), None).unwrap();
    std::fs::write(place.path().join("file"), "it is there").unwrap();
    assert_eq!(
        finish(spawn(&stage, &wanted, &InheritedFds::default(), LONG).unwrap()).stdout,
        "it is there\n"
    );
    // The one that was made meanwhile has no hold on it.
    unmount(place.path(), UnmountFlags::empty()).unwrap();
    assert_eq!(finish(spawn(&stage, &wanted, &InheritedFds::default(), LONG).unwrap()).stdout, "\n");
}
