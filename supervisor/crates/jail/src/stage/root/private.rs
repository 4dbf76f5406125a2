//! The program's private writable directory.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, Uid, chownat, mkdirat};
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

use super::super::step_error::StepError;
use super::mount_error::{MOUNT_ADVICE, failed};
use super::tree::{MountPointKind, NOSUID_NODEV_NOEXEC, RootTree, new_tmpfs};
use crate::identity::Identity;
use crate::sys;
use crate::view::{PrivateTmpfs, SHARED_MEMORY, TMP};

/// Where it is mounted first: the kernel copies only directories of something that is mounted.
const STAGING_PATH: &str = "/.private";

/// The private tmpfs, while the root is built.
pub(super) struct PrivateMount {
    mount: OwnedFd,
    /// Its directories, and their future owner.
    names: Vec<String>,
    identity: Option<Identity>,
}

impl PrivateMount {
    /// Mounts it where the view requests it, and each of its directories onto itself. So sealing it leaves
    /// the directories writable, but their owner cannot rename them. Without a separate uid, the owner is the
    /// program.
    pub(super) fn mount(
        tree: &RootTree,
        requested: &PrivateTmpfs,
        identity: Option<Identity>,
    ) -> Result<Self, StepError> {
        const WHAT: &str = "cannot make its private directory";
        let mut attributes = NOSUID_NODEV_NOEXEC;
        attributes.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, !requested.exec);
        let mount = new_tmpfs(requested.bytes, requested.inodes, attributes).map_err(failed(WHAT))?;
        tree.mount_point(Path::new(STAGING_PATH), MountPointKind::Directory)?;
        tree.mount(mount.as_fd(), Path::new(STAGING_PATH))?;
        let names: Vec<_> = requested.dirs.iter().cloned().chain([SHARED_MEMORY.to_owned()]).collect();
        let place = Self { mount, names, identity };
        for name in &place.names {
            place.directory(name)?;
        }
        // Its path may be in /tmp, so that comes first.
        place.mount_directory(tree, &requested.tmp, Path::new(TMP))?;
        place.mount_directory(tree, SHARED_MEMORY, Path::new("/dev/shm"))?;
        tree.mount_point(&requested.at, MountPointKind::Directory)?;
        tree.mount(place.mount.as_fd(), &requested.at)?;
        tree.remove(Path::new(STAGING_PATH))?;
        for name in &requested.dirs {
            place.mount_directory(tree, name, &requested.at.join(name))?;
        }
        Ok(place)
    }

    /// Makes it read-only except for its directories. Returns a descriptor of it, for the supervisor.
    ///
    /// Only now the directories are given to the program: its path or other entries may be in one of them
    /// (`/tmp`), and we could not create mount points in a directory of another owner.
    pub(super) fn seal(self) -> Result<OwnedFd, StepError> {
        for name in &self.names {
            self.give_to_program(name)?;
        }
        sys::mounts::add_attributes(self.mount.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, false)
            .map_err(|error| StepError::io("cannot seal its private directory", &error, MOUNT_ADVICE))?;
        Ok(self.mount)
    }

    fn directory(&self, name: &str) -> Result<(), StepError> {
        mkdirat(&self.mount, name, Mode::RWXU).map_err(|errno| {
            StepError::errno(
                &cannot_make(name),
                errno.raw_os_error(),
                "give it room for more files and directories",
            )
        })
    }

    fn give_to_program(&self, name: &str) -> Result<(), StepError> {
        let Some(Identity { uid, gid }) = self.identity else { return Ok(()) };
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        chownat(&self.mount, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| {
            let advice = "add CAP_CHOWN to the service's capabilities";
            StepError::errno(&cannot_make(name), errno.raw_os_error(), advice)
        })
    }

    /// Mounts one of its directories.
    fn mount_directory(&self, tree: &RootTree, name: &str, at: &Path) -> Result<(), StepError> {
        tree.mount_point(at, MountPointKind::Directory)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let directory = open_tree(&self.mount, name, flags)
            .map_err(failed("cannot take a directory of its private one"))?;
        tree.mount(directory.as_fd(), at)
    }
}

fn cannot_make(name: &str) -> String {
    format!("cannot make the directory {name} in its private one")
}
