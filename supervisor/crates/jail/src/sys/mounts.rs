//! Mount calls that rustix lacks.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::mount::MountAttrFlags;

/// Adds attributes to the mount that the descriptor refers to, and with `below` to all mounts below it as
/// well. Removes none. (Linux 5.12)
pub(crate) fn add_attributes(mount: BorrowedFd<'_>, add: MountAttrFlags, below: bool) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | if below { libc::AT_RECURSIVE } else { 0 };
    let attributes =
        libc::mount_attr { attr_set: u64::from(add.bits()), attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the descriptor is borrowed, so it is open, and the path is an empty string with its end. The
    // kernel reads a mount_attr of exactly the size that it is told, and writes nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
