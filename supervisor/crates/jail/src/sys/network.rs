//! Interface flags, for which there is only an ioctl.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Brings `lo` up in this process's network namespace.
pub(crate) fn bring_loopback_up() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: ifreq is plain bytes and a union of plain bytes, for which all zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed() as libc::c_char;
    }
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = up as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which outlives the call, and the socket is open.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
