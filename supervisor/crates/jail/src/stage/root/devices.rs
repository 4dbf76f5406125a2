//! The devices that every program gets.

use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MountAttrFlags, open_tree};

use super::super::step_error::StepError;
use super::mount_error::MOUNT_ADVICE;
use super::tree::{CLONE_FLAGS, MountPointKind, RootTree};
use crate::sys;

/// The null, zero, full and random devices, which every program gets. They store nothing, and none of them
/// reaches hardware, a terminal or another program.
pub(in super::super) const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The links that shells and C libraries expect beside them.
const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Mounts the host's own device files, since a user namespace cannot make new ones. The read-only mounts
/// protect their modes and owners, but still allow writing to the devices.
pub(super) fn make(tree: &RootTree) -> Result<(), StepError> {
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    for path in DEVICES {
        let what = || format!("cannot show {path}");
        let path = Path::new(path);
        tree.mount_point(path, MountPointKind::File)?;
        let device = open_tree(CWD, path, CLONE_FLAGS).map_err(|errno| {
            StepError::errno(&what(), errno.raw_os_error(), "is the host's /dev mounted?")
        })?;
        sys::mounts::add_attributes(device.as_fd(), attributes, false)
            .map_err(|error| StepError::io(&what(), &error, MOUNT_ADVICE))?;
        tree.mount(device.as_fd(), path)?;
    }
    for (at, to) in LINKS {
        tree.link(Path::new(at), Path::new(to))?;
    }
    Ok(())
}
