//! The new root itself, and the files and mount points made on it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};
use rustix::process::{chdir, fchdir};

use super::super::step_error::StepError;
use super::mount_error::{MOUNT_ADVICE, failed};
use crate::sys;

/// The size of the root, for generated files, the only ones with content: twice the most that a view may have
/// of them, and a page for each. Only used pages take memory, and nothing is written once the program runs.
const ROOT_BYTES: u64 = 2 << 20;

/// Files, links, mount points and the directories above them. A view may have 256 of each, some levels deep;
/// with more levels than this allows, it is refused for lack of space.
const ROOT_INODES: u64 = 8192;

/// Mounts with these attributes allow no devices, no execution and no privileges.
pub(super) const NOSUID_NODEV_NOEXEC: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Copies this mount alone, without those below it.
pub(super) const CLONE_FLAGS: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC);

/// The kind of a mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountPointKind {
    Directory,
    File,
}

/// The new root.
pub(super) struct RootTree {
    root: OwnedFd,
    /// The directories that were made on it so far, which need not be made again.
    created: RefCell<HashSet<PathBuf>>,
}

impl RootTree {
    /// Mounts it over `/`. This hides nothing from this process, whose root is below it.
    pub(super) fn over_root() -> Result<Self, StepError> {
        let root = new_tmpfs(ROOT_BYTES, ROOT_INODES, NOSUID_NODEV_NOEXEC)
            .map_err(failed("cannot make the memory file system of its root"))?;
        attach(root.as_fd(), CWD, "/").map_err(failed("cannot mount its root"))?;
        Ok(Self { root, created: RefCell::default() })
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Unmounts it again with everything on it.
    pub(super) fn unmount(self) -> Result<(), StepError> {
        fchdir(&self.root)
            .and_then(|()| unmount(".", UnmountFlags::DETACH))
            .and_then(|()| chdir("/"))
            .map_err(failed("cannot take the unfinished root away"))
    }

    /// Makes it read-only. Mounts on it are not affected.
    pub(super) fn seal(&self) -> Result<(), StepError> {
        sys::mounts::add_attributes(self.root(), MountAttrFlags::MOUNT_ATTR_RDONLY, false)
            .map_err(|error| StepError::io("cannot make its root read-only", &error, MOUNT_ADVICE))
    }

    /// Makes a mount point, and the missing directories above it.
    pub(super) fn mount_point(&self, at: &Path, kind: MountPointKind) -> Result<(), StepError> {
        match kind {
            MountPointKind::Directory => self.create_directories(&relative(at)),
            MountPointKind::File => self.create_parents(at).and_then(|()| {
                mknodat(&self.root, relative(at), FileType::RegularFile, Mode::from_raw_mode(0o444), 0)
            }),
        }
        .map_err(|errno| cannot_make(at, errno))
    }

    /// Mounts at a mount point that was made here.
    pub(super) fn mount(&self, mount: BorrowedFd<'_>, at: &Path) -> Result<(), StepError> {
        attach(mount, self.root(), relative(at)).map_err(|errno| {
            StepError::errno(
                &format!("cannot mount its {}", at.display()),
                errno.raw_os_error(),
                MOUNT_ADVICE,
            )
        })
    }

    /// Opens an existing mount point in something that is mounted. It may have been put there by others who
    /// can write there, so no link is followed.
    pub(super) fn existing(&self, at: &Path) -> Result<OwnedFd, Errno> {
        crate::no_follow::open_beneath(&self.root, &relative(at))
    }

    /// Writes a read-only file with this content.
    pub(super) fn write(&self, at: &Path, content: &[u8]) -> Result<(), StepError> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = self
            .create_parents(at)
            .and_then(|()| openat(&self.root, relative(at), flags, Mode::from_raw_mode(0o444)))
            .map_err(|errno| cannot_make(at, errno))?;
        let written = File::from(file).write_all(content);
        written.map_err(|error| StepError::io(&format!("cannot write its {}", at.display()), &error, ""))
    }

    /// A symbolic link.
    pub(super) fn link(&self, at: &Path, to: &Path) -> Result<(), StepError> {
        self.create_parents(at)
            .and_then(|()| symlinkat(to, &self.root, relative(at)))
            .map_err(|errno| cannot_make(at, errno))
    }

    /// Removes an empty directory.
    pub(super) fn remove(&self, at: &Path) -> Result<(), StepError> {
        unlinkat(&self.root, relative(at), AtFlags::REMOVEDIR).map_err(|errno| {
            StepError::errno(&format!("cannot remove its {}", at.display()), errno.raw_os_error(), "")
        })
    }

    fn create_parents(&self, at: &Path) -> Result<(), Errno> {
        self.create_directories(relative(at).parent().unwrap_or(Path::new("")))
    }

    /// Makes this directory and the missing ones above it. When this is called, everything below the root was
    /// made by us, so there is no link in the path.
    fn create_directories(&self, path: &Path) -> Result<(), Errno> {
        let mut made = self.created.borrow_mut();
        let mut missing: Vec<_> = path.ancestors().take_while(|path| !made.contains(*path)).collect();
        // The last is the root itself.
        missing.retain(|path| !path.as_os_str().is_empty());
        for directory in missing.iter().rev() {
            match mkdirat(&self.root, *directory, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => _ = made.insert((*directory).to_owned()),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

/// The path relative to the root's descriptor.
fn relative(at: &Path) -> PathBuf {
    at.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

fn cannot_make(at: &Path, errno: Errno) -> StepError {
    let advice = match errno {
        Errno::EXIST | Errno::NOTDIR => "two entries of its view are in each other's way",
        Errno::NOSPC => "its view has more entries than there is room for; show directories instead of files",
        _ => "",
    };
    StepError::errno(&format!("cannot make its {}", at.display()), errno.raw_os_error(), advice)
}

/// A new tmpfs of this size, not mounted yet. Its root belongs to us, with mode 0755.
pub(super) fn new_tmpfs(bytes: u64, inodes: u64, attributes: MountAttrFlags) -> Result<OwnedFd, Errno> {
    let new = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // The kernel takes 0 for "without limit".
    fsconfig_set_string(&new, "size", bytes.max(1).to_string())?;
    fsconfig_set_string(&new, "nr_inodes", inodes.max(1).to_string())?;
    fsconfig_set_string(&new, "mode", "755")?;
    fsconfig_create(&new)?;
    fsmount(&new, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Mounts a detached mount at a path below a descriptor, or at the descriptor itself if the path is empty.
pub(super) fn attach(
    mount: BorrowedFd<'_>,
    below: BorrowedFd<'_>,
    at: impl rustix::path::Arg,
) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount, "", below, at, flags)
}
