//! `/proc` of the program's own process numbers.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, open_tree,
};

use super::super::step::StepError;
use super::tree::{COPY, INERT, Kind, Tree, attach};
use super::{MOUNT_ADVICE, failed};
use crate::sys;

const PROC: &str = "/proc";

/// What to do where no `/proc` can be mounted.
pub(in super::super) const PROC_ADVICE: &str = "a container that covers parts of /proc keeps user namespaces from having \
                                      their own: start it with an uncovered /proc (systempaths=unconfined), or \
                                      run the supervisor as root in it with CAP_SYS_ADMIN";

/// Files that tell of the kernel's memory, of its keys, or of what others do, or that command it. Most of them are
/// root's; they are covered for everybody, since a supervisor may be root and give a program no uid of its own.
/// The kernel's command line is among them because machines are given secrets there.
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

/// Directories of hardware, of which nothing is a program's business.
const COVERED_DIRECTORIES: &[&str] = &["acpi", "asound", "scsi"];

/// Keeps whatever runs in our user namespace from making another, in which it would be mighty. Best effort: the
/// filter of system calls forbids it too, and a kernel without this switch has not much else either.
pub(super) fn forbid_nesting() {
    let _ = std::fs::write("/proc/sys/user/max_user_namespaces", "0");
}

/// Mounts it. Whether processes that the program may not trace, its monitor first of all, are hidden in it.
///
/// All of it is read-only, so that nothing in `/proc/sys` or elsewhere can be set, whoever the program is. What
/// that costs a program is naming its threads from outside of them, and its own badness to the memory killer.
pub(super) fn mount(tree: &Tree) -> Result<bool, StepError> {
    tree.mount_point(Path::new(PROC), Kind::Directory)?;
    let point = tree.existing(Path::new(PROC)).map_err(failed("cannot make its /proc"))?;
    let (proc, hidden) = match new(true) {
        Err(Errno::INVAL) => (new(false), false),
        other => (other, true),
    };
    let proc =
        proc.map_err(|errno| StepError::errno("cannot mount its /proc", errno.raw_os_error(), PROC_ADVICE))?;
    tree.mount(proc.as_fd(), Path::new(PROC))?;
    // What the mount point itself is, below the mount: an empty directory.
    let empty = || {
        let copy = open_tree(&point, "", COPY | OpenTreeFlags::AT_EMPTY_PATH)?;
        sys::mounts::add_attributes(copy.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, false)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(copy)
    };
    for name in COVERED_DIRECTORIES {
        cover(&proc, name, empty)?;
    }
    for name in COVERED_FILES {
        cover(&proc, name, || open_tree(tree.root(), "dev/null", COPY))?;
    }
    Ok(hidden)
}

/// Mounts a cover over something in `/proc`, if this kernel has it: a mount that is made in vain is taken away again,
/// for which the kernel makes everybody wait who looks at mounts.
fn cover(proc: &OwnedFd, name: &str, new: impl Fn() -> Result<OwnedFd, Errno>) -> Result<(), StepError> {
    let cannot = |errno: Errno| {
        StepError::errno(&format!("cannot cover {PROC}/{name}"), errno.raw_os_error(), MOUNT_ADVICE)
    };
    // What cannot be looked at for another reason is covered all the same.
    if let Err(Errno::NOENT) = statat(proc, name, AtFlags::SYMLINK_NOFOLLOW) {
        return Ok(());
    }
    let cover = new().map_err(cannot)?;
    attach(cover.as_fd(), proc.as_fd(), name).map_err(cannot)
}

fn new(hiding: bool) -> Result<OwnedFd, Errno> {
    let new = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    if hiding {
        fsconfig_set_string(&new, "hidepid", "invisible")?;
    }
    fsconfig_create(&new)?;
    fsmount(&new, FsMountFlags::FSMOUNT_CLOEXEC, INERT | MountAttrFlags::MOUNT_ATTR_RDONLY)
}
