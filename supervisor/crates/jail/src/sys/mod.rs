//! System calls that neither rustix nor nix wraps safely. The only `unsafe` of the tree.

pub(crate) mod keyring;
pub(crate) mod memory;
pub(crate) mod mounts;
pub(crate) mod namespaces;
pub(crate) mod network;
pub(crate) mod scheduling;
pub(crate) mod seccomp;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;

use nix::unistd::ForkResult;

/// Which side of a fork this is.
pub(crate) enum ForkSide {
    /// The new process.
    Child,
    /// The old process, with the new one's pid.
    Parent(rustix::process::Pid),
}

/// Returns an error in a process with several threads.
pub(crate) fn single_thread() -> io::Result<()> {
    // A directory's links are itself, its name above, and each directory below; the kernel counts threads so.
    let threads = std::fs::metadata("/proc/self/task")?.nlink().saturating_sub(2);
    if threads == 1 {
        Ok(())
    } else {
        Err(io::Error::other(format!("the stage has {threads} threads, it must have one")))
    }
}

/// Forks this process, which must have a single thread; otherwise it returns an error.
pub(crate) fn fork() -> io::Result<ForkSide> {
    single_thread()?;
    // SAFETY: there is one thread, as was just counted, and no other could start one. So no lock can be held
    // by a thread that the child lacks, and the child may do whatever its parent may.
    let forked = unsafe { nix::unistd::fork() }?;
    Ok(match forked {
        ForkResult::Child => ForkSide::Child,
        ForkResult::Parent { child } => ForkSide::Parent(
            rustix::process::Pid::from_raw(child.as_raw())
                .expect("fork gives its parent a number above zero"),
        ),
    })
}

/// Closes every descriptor from `first` on. The caller must own none of them: this is for a process that has
/// just started and has opened nothing yet.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: close_range takes plain numbers. That nothing in this process owns a closed descriptor is so
    // because the stage calls this before it has opened any, and std owns only 0, 1 and 2.
    let result = unsafe { libc::close_range(first, libc::c_uint::MAX, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Resets every signal to its default action, so that the program inherits none. Uses the system call itself,
/// since the C library reserves two signals, which posix_spawn leaves ignored.
pub(crate) fn reset_signals() {
    const SIGNAL_SET_BYTES: usize = 8;
    // The kernel's own sigaction in any of its shapes, none of which is larger: all zero is SIG_DFL, no
    // flags.
    let default = [0_u64; 8];
    let old = std::ptr::null_mut::<u64>();
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the kernel reads as much of `default` as its sigaction has, and writes nothing, as `old` is
        // null. SIG_DFL installs no handler. It refuses SIGKILL and SIGSTOP, which have no other meaning.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), old, SIGNAL_SET_BYTES) };
    }
}

/// Gives freed memory back to the kernel; a monitor lives long and needs next to none.
pub(crate) fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim takes no pointer and touches only memory that the allocator holds as free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The version of Landlock that this kernel speaks.
pub(crate) fn landlock_abi() -> io::Result<i64> {
    const VERSION: libc::c_uint = 1;
    let (nothing, no_bytes) = (std::ptr::null::<libc::c_void>(), 0_usize);
    // SAFETY: with LANDLOCK_CREATE_RULESET_VERSION the kernel requires a null pointer of size 0, reads no
    // memory and makes no descriptor.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, no_bytes, VERSION) };
    if abi < 0 { Err(io::Error::last_os_error()) } else { Ok(abi) }
}

/// Signals the process group that the pidfd's process leads, without the risk that its number was reused.
/// Kernels before 6.9 refuse it.
pub(crate) fn signal_group(pidfd: BorrowedFd<'_>, signal: rustix::process::Signal) -> io::Result<()> {
    const PROCESS_GROUP: libc::c_uint = 1 << 2;
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is borrowed, so it is open, and a null siginfo is what kill() would send.
    let result = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal.as_raw(), no_info, PROCESS_GROUP)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
