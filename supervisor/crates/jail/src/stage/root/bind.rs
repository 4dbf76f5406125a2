//! Mounts the host's files that the view shows.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

use super::super::step_error::StepError;
use super::mount_error::{MOUNT_ADVICE, failed};
use super::open;
use super::tree::{CLONE_FLAGS, MountPointKind, RootTree, attach};
use crate::sys;
use crate::view::{Access, BindMount};

/// Mounts one entry, unless it is optional and the host does not have it. `inside` says that it is inside
/// another entry.
pub(super) fn mount_entry(tree: &RootTree, shown: &BindMount, inside: bool) -> Result<(), StepError> {
    let from = match open::no_follow(&shown.from) {
        Ok(from) => from,
        Err(errno) if !shown.needed && open::is_absence(errno) => return Ok(()),
        Err(errno) => return Err(open::explain(&shown.from, errno)),
    };
    mount(tree, from.as_fd(), &shown.at, attributes(shown.access), inside)
}

/// Mounts the checked program at its path: exactly the file that the descriptor refers to. The kernel mounts
/// only what was opened in our own namespace, so it is opened again by the descriptor's path, and compared.
pub(super) fn mount_program(tree: &RootTree, at: &Path, file: &File, inside: bool) -> Result<(), StepError> {
    let failed = |errno: Errno| {
        StepError::errno("cannot look at the program's file", errno.raw_os_error(), "is /proc mounted?")
    };
    let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
    let checked = fstat(file).map(identity).map_err(failed)?;
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = std::fs::read_link(link)
        .map_err(|error| StepError::io("cannot look at the program's file", &error, "is /proc mounted?"))?;
    let same = open::no_follow(&path)
        .ok()
        .filter(|found| fstat(found).map(identity) == Ok(checked))
        .ok_or_else(|| {
            StepError::new(format!(
                "the program is no longer the file {} (it was replaced or removed since it was checked; start it \
                 again)",
                path.display()
            ))
        })?;
    mount(tree, same.as_fd(), at, attributes(Access::Execute), inside)
}

fn attributes(access: Access) -> MountAttrFlags {
    let always = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    match access {
        // Connecting writes to no file system.
        Access::Read | Access::Connect => {
            always | MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC
        }
        Access::Execute => always | MountAttrFlags::MOUNT_ATTR_RDONLY,
        Access::Write => always | MountAttrFlags::MOUNT_ATTR_NOEXEC,
    }
}

fn mount(
    tree: &RootTree,
    from: BorrowedFd<'_>,
    at: &Path,
    attributes: MountAttrFlags,
    inside: bool,
) -> Result<(), StepError> {
    let kind = kind(from).map_err(failed("cannot look at what is to be shown"))?;
    let refused = |errno: Errno| {
        StepError::errno(&format!("cannot show {}", at.display()), errno.raw_os_error(), MOUNT_ADVICE)
    };
    let mounted = clone_mount(from).map_err(refused)?;
    sys::mounts::add_attributes(mounted.as_fd(), attributes, true)
        .map_err(|error| StepError::io(&format!("cannot restrict {}", at.display()), &error, MOUNT_ADVICE))?;
    if !inside {
        tree.mount_point(at, kind)?;
        return tree.mount(mounted.as_fd(), at);
    }
    let point = tree.existing(at).map_err(|errno| {
        StepError::errno(
            &format!("cannot show {} inside of what is shown above it", at.display()),
            errno.raw_os_error(),
            "the same path must be there on the host, without a symbolic link on the way",
        )
    })?;
    attach(mounted.as_fd(), point.as_fd(), "").map_err(refused)
}

fn kind(file: BorrowedFd<'_>) -> Result<MountPointKind, Errno> {
    let directory = FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::Directory;
    Ok(if directory { MountPointKind::Directory } else { MountPointKind::File })
}

/// A copy of the mount, with all mounts below it: in a user namespace the kernel does not separate what the
/// host has mounted together.
fn clone_mount(from: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    open_tree(from, "", CLONE_FLAGS | OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE)
}
