//! The control protocol: small JSON packets over a `SOCK_SEQPACKET` socket pair, with descriptors beside them.
//!
//! The supervisor and its zygote have a socket of their own, over which [`Call`]s go; all else is about one program.
//!
//! Both ends are this crate, from the same image. What makes the packets bounded all the same is that the
//! supervisor must not be made to hold more than it planned for, whatever happens to a monitor.
//!
//! | packet | from | descriptors |
//! |---|---|---|
//! | [`Order::Start`] | supervisor, once, first | the spec (a sealed memfd), then those of its [`Role`]s |
//! | [`Note::Born`] | stage, once, first | a pidfd of itself, as it becomes the monitor |
//! | [`Note::Failed`] | stage, monitor or child, if a step fails | |
//! | [`Note::Report`] | child, once the jail is built | |
//! | [`Note::Learning`] | stage, for a program that learns | the filter's listener |
//! | [`Note::Running`] | monitor, once the program was executed | a pidfd of the program, then its private directory if it has one |
//! | [`Order::Signal`], [`Order::KillAll`] | supervisor, at any time after | |
//! | [`Note::Ended`] | monitor, once | |
//! | end of file | supervisor: kill everything. Monitor: nothing is left | |

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exit::ExitStatus;
use crate::report::Protection;

/// The largest packet. The longest is a failure's text of [`TEXT_MAX_BYTES`], six times as long when every
/// byte of it needs a JSON escape. A larger one is an error at the sender.
const PACKET_MAX_BYTES: usize = 16 << 10;

/// The longest text that a stage reports: a sentence and two paths of moderate length. Longer ones are cut.
const TEXT_MAX_BYTES: usize = 2 << 10;

/// The most descriptors beside one packet: the spec and one for each [`Role`].
const DESCRIPTORS_MAX: usize = 5;

/// What the supervisor asks its zygote for, over a socket of their own: a stage, which gets the three descriptors that
/// come along: its control socket, and the program's output and errors.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The namespaces that it is to be born into.
    pub(crate) namespaces: Option<Wanted>,
    /// Whether there is no program for it yet: it takes its mounts when there is.
    pub(crate) ahead: bool,
}

/// What a spec asks for of namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    /// One of the network too.
    pub(crate) network: bool,
    /// Whether its program is to get a uid of its own, which it could not have in a user namespace of ours.
    pub(crate) own_uid: bool,
}

/// What the supervisor tells a stage or monitor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Build the jail of the spec that comes along, and execute the program. The other descriptors are these.
    Start(Vec<Role>),
    /// Send the program and its process group this signal.
    Signal(i32),
    /// Kill everything that the program started, and itself.
    KillAll,
}

/// What a descriptor beside [`Order::Start`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// What is executed.
    Program,
    /// Where the stage says how far it has come.
    Progress,
    /// The program's standard input.
    Stdin,
    /// The `cgroup.procs` of its cgroup.
    Group,
}

/// What a stage or monitor tells its supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Note {
    /// The stage is there; its pidfd comes along.
    Born,
    /// Lines of the report.
    Report(Vec<Protection>),
    /// A step failed, the program will not run.
    Failed {
        /// The step's name.
        step: String,
        /// What went wrong and what to do about it.
        reason: String,
    },
    /// The filter that learns is loaded; its listener comes along.
    Learning,
    /// The program was executed.
    Running,
    /// The program has ended; what it started is being killed.
    Ended(ExitStatus),
}

impl Note {
    pub(crate) fn failed(step: &str, reason: &str) -> Self {
        let mut end = reason.len().min(TEXT_MAX_BYTES);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Self::Failed { step: step.to_owned(), reason: reason[..end].to_owned() }
    }
}

/// One end for the supervisor, one for the stage. Both are close-on-exec; the stage gets its as standard input.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one packet. It never blocks: the few packets of a jail's life fit the socket's buffer, and a full one
/// means that the other side has stopped, which is `WouldBlock`.
pub(crate) fn send<M: Serialize>(
    socket: BorrowedFd<'_>,
    message: &M,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let packet = serde_json::to_vec(message)?;
    if packet.len() > PACKET_MAX_BYTES || descriptors.len() > DESCRIPTORS_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the packet is larger than the protocol allows",
        ));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = beside.push(SendAncillaryMessage::ScmRights(descriptors));
        debug_assert!(fits, "the space is made for as many as were checked");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&packet)], &mut beside, flags))?;
    Ok(())
}

/// Sends a report, in one packet if it fits into one and otherwise line by line.
pub(crate) fn send_report(socket: BorrowedFd<'_>, report: Vec<Protection>) -> io::Result<()> {
    let whole = Note::Report(report);
    match (send(socket, &whole, &[]), whole) {
        (Err(error), Note::Report(report)) if error.kind() == io::ErrorKind::InvalidInput => {
            report.into_iter().try_for_each(|line| send(socket, &Note::Report(vec![line]), &[]))
        }
        (sent, _) => sent,
    }
}

/// What one look at the socket found.
#[derive(Debug)]
pub(crate) enum Received<M> {
    /// A packet, and the descriptors beside it.
    Packet(M, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The other side has closed, and everything it sent was read.
    Closed,
}

/// Takes the next packet without waiting for one.
pub(crate) fn receive<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<Received<M>> {
    receive_with(socket.as_fd(), RecvFlags::DONTWAIT)
}

/// Takes the next packet, and waits for it.
pub(crate) fn receive_waiting<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<Received<M>> {
    receive_with(socket.as_fd(), RecvFlags::empty())
}

fn receive_with<M: DeserializeOwned>(socket: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<Received<M>> {
    let mut packet = vec![0; PACKET_MAX_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut take = || {
        let mut parts = [IoSliceMut::new(&mut packet)];
        retry_on_intr(|| recvmsg(socket, &mut parts, &mut beside, flags | RecvFlags::CMSG_CLOEXEC))
    };
    let taken = match take() {
        // The other side closed with something of ours unread. The kernel says so once, before it hands out
        // what that side had sent earlier, which may be the exit status that somebody waits for.
        Err(Errno::CONNRESET) => take(),
        other => other,
    };
    let taken = match taken {
        Ok(taken) => taken,
        Err(Errno::AGAIN) => return Ok(Received::Nothing),
        Err(Errno::CONNRESET | Errno::PIPE) => return Ok(Received::Closed),
        Err(error) => return Err(error.into()),
    };
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(given) = message {
            descriptors.extend(given);
        }
    }
    if taken.bytes == 0 {
        return Ok(Received::Closed);
    }
    // The space is rounded up, so that there may be room for one more than was agreed.
    let cut = taken.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    if cut || descriptors.len() > DESCRIPTORS_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet larger than the protocol allows"));
    }
    let message = serde_json::from_slice(&packet[..taken.bytes])?;
    Ok(Received::Packet(message, descriptors))
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
