//! clone(2), with what fork(2) lacks.

use std::io;

/// Which side of the clone this is.
pub(crate) enum CloneResult {
    /// The new process.
    Child,
    /// The old one.
    Parent,
}

/// Clones this process, which must have a single thread, as a child of its own parent, which reaps it. `into`
/// are the `CLONE_NEW…` flags of namespaces whose first process it becomes.
pub(crate) fn clone_as_sibling(into: libc::c_int) -> io::Result<CloneResult> {
    const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWUSER;
    super::single_thread()?;
    // Nothing that would make the two share memory.
    let flags = libc::CLONE_PARENT | into & NAMESPACES;
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: without CLONE_VM this is a fork: the child has its own copy of the memory and, with a null
    // stack, continues where the parent was. There is one thread, as was just counted, so no lock is held by
    // a thread that the child lacks. No flag has the kernel write through one of the null pointers.
    let cloned = unsafe {
        libc::syscall(libc::SYS_clone, libc::c_ulong::from(flags.unsigned_abs()), none, none, none, none)
    };
    match cloned {
        0 => Ok(CloneResult::Child),
        number if number > 0 => Ok(CloneResult::Parent),
        _ => Err(io::Error::last_os_error()),
    }
}
