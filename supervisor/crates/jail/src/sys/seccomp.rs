//! Loads system call filters, and answers a filter's notifications.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// One BPF instruction: code, jump if true, jump if false, constant.
pub type Instruction = (u16, u8, u8, u32);

/// A call that a filter reported; the calling process waits for the answer.
#[derive(Debug)]
pub(crate) struct Notification {
    /// The id for the answer.
    pub(crate) id: u64,
    /// The number of the system call.
    pub(crate) number: u32,
    pub(crate) arguments: [u64; 6],
}

/// Binds this thread, and everything that it starts, to a filter. Needs no-new-privs or CAP_SYS_ADMIN.
pub(crate) fn load(program: &[Instruction]) -> io::Result<()> {
    set(program, 0).map(drop)
}

/// The same for a filter that reports calls; returns its listener (close-on-exec).
pub(crate) fn load_with_listener(program: &[Instruction]) -> io::Result<OwnedFd> {
    let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Without the second flag, a signal interrupts a call that is being answered, and a runtime that sends
    // itself many signals (Go) never finishes one. Kernels before 5.19 do not know the flag.
    let listener = match set(program, listening | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set(program, listening)?,
        other => other?,
    };
    // SAFETY: the kernel made this descriptor for us just now and nothing else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

fn set(program: &[Instruction], flags: libc::c_ulong) -> io::Result<RawFd> {
    let mut steps: Vec<libc::sock_filter> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let length = u16::try_from(steps.len())
        .map_err(|_| io::Error::other("the filter has more instructions than the kernel takes"))?;
    let program = libc::sock_fprog { len: length, filter: steps.as_mut_ptr() };
    // SAFETY: `program` describes `steps`, which live until after the call; the kernel copies and checks them
    // and writes nothing back.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    RawFd::try_from(result).map_err(io::Error::other)
}

/// Receives the next call; blocks until there is one. `NotFound` if the calling process died or was
/// interrupted in between.
pub(crate) fn next_notification(listener: BorrowedFd<'_>) -> io::Result<Notification> {
    let mut notification = libc::seccomp_notif {
        id: 0,
        pid: 0,
        flags: 0,
        data: libc::seccomp_data { nr: 0, arch: 0, instruction_pointer: 0, args: [0; 6] },
    };
    // SAFETY: the request's number carries the size of `seccomp_notif`, so that the kernel writes that much,
    // and `notification` is all zero, as it demands.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Notification {
        id: notification.id,
        number: notification.data.nr.cast_unsigned(),
        arguments: notification.data.args,
    })
}

/// Puts a descriptor into the calling process, as the result of its call. `NotFound` if the process is gone;
/// any other error leaves the call waiting for another answer.
pub(crate) fn answer_with_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    descriptor: BorrowedFd<'_>,
    close_on_exec: bool,
) -> io::Result<()> {
    let number = |value: i32| u32::try_from(value).expect("descriptors and flags are not negative");
    let given = libc::seccomp_notif_addfd {
        id,
        flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SEND).expect("it is 2"),
        srcfd: number(descriptor.as_raw_fd()),
        newfd: 0,
        newfd_flags: if close_on_exec { number(libc::O_CLOEXEC) } else { 0 },
    };
    // SAFETY: the request's number carries the size of `seccomp_notif_addfd`, which `given` is; it outlives
    // the call, and the kernel only reads it.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const given) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the call fail. `NotFound` if the calling process is gone.
pub(crate) fn refuse(listener: BorrowedFd<'_>, id: u64, errno: i32) -> io::Result<()> {
    answer(listener, libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 })
}

/// Allows the call. `NotFound` if the calling process is gone.
pub(crate) fn allow(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).expect("it is 1");
    answer(listener, libc::seccomp_notif_resp { id, val: 0, error: 0, flags })
}

fn answer(listener: BorrowedFd<'_>, mut answer: libc::seccomp_notif_resp) -> io::Result<()> {
    // SAFETY: the request's number carries the size of `seccomp_notif_resp`, which `answer` is; it outlives
    // the call.
    let result =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
