//! Interface flags, for which there is only an ioctl, and filters of sockets.

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

/// The ports at which a socket may be reached by clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListenPorts {
    Any,
    Listed(Vec<u16>),
}

/// Has a TCP socket drop every attempt to connect to it, except at these ports. That cannot be undone.
///
/// The filter sees packets from their TCP header on, and drops those that begin a connection: SYN without
/// ACK. What the socket itself connects to answers with both.
pub(crate) fn refuse_clients(socket: &impl AsRawFd, ports: &ListenPorts) -> io::Result<()> {
    const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const DESTINATION_PORT: u32 = 2;
    const FLAGS: u32 = 13;
    const SYN: u32 = 2;
    const ACK: u32 = 16;

    let ListenPorts::Listed(ports) = ports else { return Ok(()) };
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = vec![
        step(LOAD_BYTE, 0, 0, FLAGS),
        step(AND, 0, 0, SYN | ACK),
        step(IF_EQUAL, 1, 0, SYN),
        step(RETURN, 0, 0, u32::MAX),
        step(LOAD_HALF, 0, 0, DESTINATION_PORT),
    ];
    for port in ports {
        filter.push(step(IF_EQUAL, 0, 1, u32::from(*port)));
        filter.push(step(RETURN, 0, 0, u32::MAX));
    }
    filter.push(step(RETURN, 0, 0, 0));
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    set_option(socket, libc::SO_ATTACH_FILTER, &program)?;
    set_option(socket, libc::SO_LOCK_FILTER, &1_i32)
}

fn set_option<T>(socket: &impl AsRawFd, option: i32, value: &T) -> io::Result<()> {
    let length = u32::try_from(size_of::<T>()).expect("an option has a few bytes");
    // SAFETY: the kernel reads `length` bytes of `value`, which is that long and outlives the call; a filter
    // program in it describes instructions that the caller keeps until then, and which the kernel copies.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const *value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
