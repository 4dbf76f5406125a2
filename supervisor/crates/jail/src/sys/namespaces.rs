//! clone(2) beyond what fork(2) is.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::process::Pid;

/// Which side of the clone this is.
pub(crate) enum Cloned {
    /// The new process.
    Child,
    /// The old one, with the new one's number and descriptor.
    Parent(Pid, OwnedFd),
}

/// Clones this process, which must have a single thread, as a child of its own parent. After an unshare of the
/// process numbers it is the first of the new ones, and yet waited for by who started us.
pub(crate) fn clone_as_sibling() -> io::Result<Cloned> {
    super::single_thread()?;
    let flags = libc::CLONE_PARENT | libc::CLONE_PIDFD;
    let mut pidfd: libc::c_int = -1;
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: without CLONE_VM this is a fork: the child has its own copy of the memory and, with a null stack,
    // goes on where the parent was. There is one thread, as was just counted, so no lock is held by a thread that
    // the child lacks. The kernel writes one int through the third argument, which outlives the call.
    let cloned = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_ulong::from(flags.unsigned_abs()),
            none,
            &raw mut pidfd,
            none,
            none,
        )
    };
    match cloned {
        0 => Ok(Cloned::Child),
        number if number > 0 => {
            // SAFETY: the kernel made this descriptor for this call alone, so nobody else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
            Ok(Cloned::Parent(pid.expect("clone gives its parent a number above zero"), pidfd))
        }
        _ => Err(io::Error::last_os_error()),
    }
}
