//! `/proc` for the program's pid namespace.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, open_tree,
};

use super::super::step_error::StepError;
use super::mount_error::{MOUNT_ADVICE, failed};
use super::tree::{CLONE_FLAGS, MountPointKind, NOSUID_NODEV_NOEXEC, RootTree, attach};
use crate::sys;

const PROC: &str = "/proc";

/// The advice where no `/proc` can be mounted.
pub(in super::super) const PROC_ADVICE: &str = "a container that covers parts of /proc keeps user namespaces from having \
                                      their own: start it with an uncovered /proc (systempaths=unconfined), or \
                                      run the supervisor as root in it with CAP_SYS_ADMIN";

/// Files that reveal the kernel's memory, its keys, or what others do, or that control the kernel. Most of
/// them are root's. They are covered for every program, since a supervisor may be root and give a program no
/// separate uid. The kernel's command line is among them because some machines get secrets there.
const COVERED_FILES: &[&str] = &[
    "cmdline",
    "config.gz",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "modules",
    "pagetypeinfo",
    "sched_debug",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
    "vmcore",
];

/// Directories about hardware, which no program needs.
const COVERED_DIRECTORIES: &[&str] = &["acpi", "asound", "scsi"];

/// Forbids nested user namespaces, in which a process would have all capabilities. Best effort: the system
/// call filter forbids it too, and a kernel without this sysctl lacks most of the rest as well.
pub(super) fn forbid_nesting() {
    let _ = std::fs::write("/proc/sys/user/max_user_namespaces", "0");
}

/// Mounts it. Returns whether it hides processes that the program may not trace, above all its monitor.
///
/// All of it is read-only, so that nothing in `/proc/sys` or elsewhere can be set, whatever the program's
/// uid. Because of that, a program can name threads only from within, and cannot set its own OOM score.
pub(super) fn mount(tree: &RootTree) -> Result<bool, StepError> {
    tree.mount_point(Path::new(PROC), MountPointKind::Directory)?;
    let point = tree.existing(Path::new(PROC)).map_err(failed("cannot make its /proc"))?;
    let (proc, hidden) = match new_proc(true) {
        Err(Errno::INVAL) => (new_proc(false), false),
        other => (other, true),
    };
    let proc =
        proc.map_err(|errno| StepError::errno("cannot mount its /proc", errno.raw_os_error(), PROC_ADVICE))?;
    tree.mount(proc.as_fd(), Path::new(PROC))?;
    // The cover for directories: an empty directory, the mount point below the mount.
    let empty = || {
        let copy = open_tree(&point, "", CLONE_FLAGS | OpenTreeFlags::AT_EMPTY_PATH)?;
        sys::mounts::add_attributes(copy.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, false)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(copy)
    };
    for name in COVERED_DIRECTORIES {
        cover(&proc, name, empty)?;
    }
    for name in COVERED_FILES {
        cover(&proc, name, || open_tree(tree.root(), "dev/null", CLONE_FLAGS))?;
    }
    Ok(hidden)
}

/// Covers something in `/proc`, if this kernel has it. Checks first: a mount that is removed again makes
/// every process wait that looks at mounts.
fn cover(proc: &OwnedFd, name: &str, new: impl Fn() -> Result<OwnedFd, Errno>) -> Result<(), StepError> {
    let cannot = |errno: Errno| {
        StepError::errno(&format!("cannot cover {PROC}/{name}"), errno.raw_os_error(), MOUNT_ADVICE)
    };
    // If the check fails for another reason, it is covered nevertheless.
    if let Err(Errno::NOENT) = statat(proc, name, AtFlags::SYMLINK_NOFOLLOW) {
        return Ok(());
    }
    let cover = new().map_err(cannot)?;
    attach(cover.as_fd(), proc.as_fd(), name).map_err(cannot)
}

fn new_proc(hiding: bool) -> Result<OwnedFd, Errno> {
    let new = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    if hiding {
        fsconfig_set_string(&new, "hidepid", "invisible")?;
    }
    fsconfig_create(&new)?;
    fsmount(&new, FsMountFlags::FSMOUNT_CLOEXEC, NOSUID_NODEV_NOEXEC | MountAttrFlags::MOUNT_ATTR_RDONLY)
}
