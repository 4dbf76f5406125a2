//! Kernel keyrings.

use std::io;

/// Replaces the inherited session keyring by a new, empty, nameless one, and returns its number.
pub(crate) fn join_new_session() -> io::Result<libc::c_long> {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    let nameless = std::ptr::null::<libc::c_char>();
    // SAFETY: for this command the kernel reads a name from the pointer, or none when it is null.
    let keyring = unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, nameless) };
    if keyring < 0 { Err(io::Error::last_os_error()) } else { Ok(keyring) }
}
