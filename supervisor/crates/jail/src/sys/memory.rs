//! Restricts what a process may do with its own memory.

use std::io;

/// From now on no writable memory becomes executable in this process, and the kernel refuses memory that is
/// both. Processes that it starts are not bound by this. Fails on kernels before 6.6, which would bind
/// children too.
pub(crate) fn forbid_new_code() -> io::Result<()> {
    let what = libc::PR_MDWE_REFUSE_EXEC_GAIN | libc::PR_MDWE_NO_INHERIT;
    let none: libc::c_ulong = 0;
    // SAFETY: the call takes plain numbers and touches no memory of ours; mappings that are there stay as
    // they are.
    let result = unsafe { libc::prctl(libc::PR_SET_MDWE, libc::c_ulong::from(what), none, none, none) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: UNIT-11
    #[test]
    fn nothing_is_writable_and_executable_from_then_on() {
        if let Err(error) = forbid_new_code() {
            eprintln!("skipped nothing_is_writable_and_executable_from_then_on: {error} (Linux 6.6)");
            return;
        }
        let both = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place of the kernel's choice, which touches nothing that is there.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 4096, both, flags, -1, 0) };
        assert_eq!(mapped, libc::MAP_FAILED);
    }
}
