//! Interface flags and addresses, which are set by ioctl, and filters of sockets.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Brings `lo` up in this process's network namespace.
pub(crate) fn bring_loopback_up() -> io::Result<()> {
    let mut request = interface_request("lo");
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = up as libc::c_short;
    set_interface(&control_socket()?, libc::SIOCSIFFLAGS, &request)
}

/// Gives `lo` a further address, under a label with this number. Nothing else becomes local by it.
pub(crate) fn add_loopback_address(label: usize, address: Ipv4Addr) -> io::Result<()> {
    let socket = control_socket()?;
    let mut request = interface_request(&format!("lo:{label}"));
    for (call, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, Ipv4Addr::BROADCAST)] {
        request.ifr_ifru.ifru_addr = socket_address(value);
        set_interface(&socket, call, &request)?;
    }
    Ok(())
}

/// Any socket of the family carries these calls.
fn control_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// A request about an interface; a longer name is cut, so that it names none.
fn interface_request(name: &str) -> libc::ifreq {
    // SAFETY: ifreq is plain bytes and a union of plain bytes, for which all zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let last = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..last].iter_mut().zip(name.as_bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request
}

/// An IPv4 address as an ifreq has it: the family, no port, the address in network order.
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, from) in data[2..6].iter_mut().zip(address.octets()) {
        *to = from.cast_signed() as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}

fn set_interface(socket: &OwnedFd, call: libc::Ioctl, request: &libc::ifreq) -> io::Result<()> {
    // SAFETY: these calls (SIOCSIF…) read one ifreq, which outlives the call, and the socket is open.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), call, &raw const *request) };
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
