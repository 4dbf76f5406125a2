//! The listeners in the outer namespace that reveal a hole: everything is open to every user, and only a jail
//! prevents access.

use std::fs::{self, File, Permissions};
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::thread;

use anyhow::Context;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use crate::targets::{
    ABSTRACT, DATAGRAM_SOCKETS, GRANTED_PORT, PASSING, PASSING_ABSTRACT, PEER_STATE, SOCKETS, TCP_PORT,
    TCP6_PORT, UDP_PORT,
};

/// Starts all of them; they live as long as the process.
pub(crate) fn start() -> anyhow::Result<()> {
    for path in SOCKETS {
        let listener = bind(path)?;
        thread::spawn(move || listener.incoming().for_each(drop));
    }
    for path in DATAGRAM_SOCKETS {
        make_parent(path)?;
        let socket = UnixDatagram::bind(path).with_context(|| format!("cannot bind {path}"))?;
        open_to_all(path)?;
        thread::spawn(move || while socket.recv(&mut [0; 64]).is_ok() {});
    }
    let abstract_ = by_name(ABSTRACT)?;
    thread::spawn(move || abstract_.incoming().for_each(drop));
    for listener in [bind(PASSING)?, by_name(PASSING_ABSTRACT)?] {
        thread::spawn(move || pass_secrets(&listener));
    }
    for (address, port) in [("0.0.0.0", TCP_PORT), ("::", TCP6_PORT), ("0.0.0.0", GRANTED_PORT)] {
        let listener =
            TcpListener::bind((address, port)).with_context(|| format!("cannot bind port {port}"))?;
        thread::spawn(move || listener.incoming().for_each(drop));
    }
    let echo = UdpSocket::bind(("0.0.0.0", UDP_PORT)).context("cannot bind the UDP port")?;
    thread::spawn(move || answer(&echo, <[u8]>::to_vec));
    let names = UdpSocket::bind(("127.0.0.1", 53)).context("cannot bind port 53")?;
    thread::spawn(move || answer(&names, resolve));
    Ok(())
}

fn bind(path: &str) -> anyhow::Result<UnixListener> {
    make_parent(path)?;
    let listener = UnixListener::bind(path).with_context(|| format!("cannot bind {path}"))?;
    open_to_all(path)?;
    Ok(listener)
}

fn make_parent(path: &str) -> anyhow::Result<()> {
    let parent = Path::new(path).parent().context("a socket lies in a directory")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())
}

fn open_to_all(path: &str) -> anyhow::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o777)).with_context(|| path.to_owned())
}

fn by_name(name: &str) -> anyhow::Result<UnixListener> {
    let address = SocketAddr::from_abstract_name(name)?;
    UnixListener::bind_addr(&address).with_context(|| format!("cannot bind @{name}"))
}

/// One byte and a descriptor of a file that is not the receiver's.
fn pass_secrets(listener: &UnixListener) {
    for peer in listener.incoming().flatten() {
        if let Ok(secret) = File::open(PEER_STATE) {
            let descriptors = [secret.as_raw_fd()];
            let rights = [ControlMessage::ScmRights(&descriptors)];
            // The attack may have ended meanwhile.
            let _ =
                sendmsg::<()>(peer.as_raw_fd(), &[IoSlice::new(b"x")], &rights, MsgFlags::MSG_NOSIGNAL, None);
        }
    }
}

fn answer(socket: &UdpSocket, reply: impl Fn(&[u8]) -> Vec<u8>) {
    let mut question = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut question) {
        let _ = socket.send_to(&reply(&question[..length]), from);
    }
}

/// The answer to a DNS question: an address of the documentation's range, whatever the name is.
fn resolve(question: &[u8]) -> Vec<u8> {
    const HEADER: usize = 12;
    if question.len() < HEADER {
        return Vec::new();
    }
    let mut name_end = HEADER;
    while question.get(name_end).is_some_and(|length| *length != 0) {
        name_end += 1 + usize::from(question[name_end]);
    }
    // After the name come its terminator, type and class.
    let Some(asked) = question.get(HEADER..name_end + 5) else { return Vec::new() };
    let is_address = asked[asked.len() - 4..] == [0, 1, 0, 1];
    let mut reply = question[..2].to_vec();
    reply.extend([0x81, 0x80, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
    reply.extend(asked);
    if is_address {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    }
    reply
}

/// Connects to a port and an abstract name of the outer namespace, so that a listener there notices it.
pub(crate) fn knock(port: u16, name: &str) {
    let _ = std::net::TcpStream::connect(("127.0.0.1", port));
    if let Ok(address) = SocketAddr::from_abstract_name(name) {
        let _ = UnixStream::connect_addr(&address);
    }
}

/// Sends a word over a stream socket and reads it back.
pub(crate) fn echo(stream: &mut (impl Read + Write)) -> std::io::Result<()> {
    const WORD: &[u8; 8] = b"neighbor";
    let mut back = [0; 8];
    stream.write_all(WORD)?;
    stream.read_exact(&mut back)?;
    if &back == WORD { Ok(()) } else { Err(std::io::Error::other("another word came back")) }
}
