//! Inherited scheduling attributes of a process: its scheduling policy, its I/O class, its personality.
//!
//! Uses the system calls themselves: some C libraries refuse to change a scheduling policy, since POSIX
//! defines it differently.

use std::ffi::{c_int, c_long, c_ulong};
use std::io;

/// The target of `ioprio_get` and `ioprio_set`: one thread.
const IOPRIO_WHO_PROCESS: c_int = 1;

/// The calling thread, in these calls.
const CALLING_THREAD: c_int = 0;

/// For `personality`: read it without a change.
const QUERY_PERSONALITY: c_ulong = 0xffff_ffff;

/// The scheduling policy of this thread, without its flag.
pub(crate) fn policy() -> io::Result<c_int> {
    // SAFETY: the call takes one plain number, and touches no memory of ours.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, CALLING_THREAD) };
    Ok(to_c_int(policy)? & !libc::SCHED_RESET_ON_FORK)
}

/// Gives this thread the ordinary policy, which needs no right.
pub(crate) fn reset_policy() -> io::Result<()> {
    let priority: c_int = 0;
    let parameters = &raw const priority;
    // SAFETY: the kernel's sched_param is one int, which it reads from the pointer; the int outlives the
    // call.
    let result =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, CALLING_THREAD, libc::SCHED_OTHER, parameters) };
    to_c_int(result).map(drop)
}

/// This thread's I/O class and level, combined as in linux/ioprio.h.
pub(crate) fn io_priority() -> io::Result<c_int> {
    // SAFETY: the call takes two plain numbers, and touches no memory of ours.
    to_c_int(unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, CALLING_THREAD) })
}

/// Sets I/O class and level; 0 is the default, which follows the nice value.
pub(crate) fn set_io_priority(class: c_int) -> io::Result<()> {
    // SAFETY: the call takes three plain numbers, and touches no memory of ours.
    to_c_int(unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, CALLING_THREAD, class) })
        .map(drop)
}

/// This process's personality.
pub(crate) fn personality() -> io::Result<c_int> {
    // SAFETY: the call takes one plain number; this one changes nothing.
    to_c_int(unsafe { libc::syscall(libc::SYS_personality, QUERY_PERSONALITY) })
}

/// Sets Linux's own personality, with all its memory protections.
pub(crate) fn reset_personality() -> io::Result<()> {
    let plain: c_ulong = 0;
    // SAFETY: the call takes one plain number. Address layout and the like change at the next execution, and
    // none of the bits that are cleared makes memory that we have go away.
    to_c_int(unsafe { libc::syscall(libc::SYS_personality, plain) }).map(drop)
}

fn to_c_int(result: c_long) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        c_int::try_from(result).map_err(io::Error::other)
    }
}
