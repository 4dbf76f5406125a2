//! The control protocol: small JSON packets over a `SOCK_SEQPACKET` socket pair, with attached descriptors.
//!
//! The supervisor and its zygote have a separate socket, for [`Call`]s; everything else is about one program.
//!
//! Both ends are this crate, from the same image. The packets have a size limit nevertheless, so that a
//! compromised or broken monitor cannot use up the supervisor's memory.
//!
//! | packet | from | descriptors |
//! |---|---|---|
//! | [`StageCommand::Start`] | supervisor, once, first | the spec (a sealed memfd), then one for each of its [`DescriptorRole`]s |
//! | [`StageNote::Born`] | stage, once, first | its own pidfd, since it becomes the monitor |
//! | [`StageNote::Failed`] | stage, monitor or child, if a step fails | |
//! | [`StageNote::LoopbackListener`] | stage, for each socket that the supervisor serves inside, in their order | the socket |
//! | [`StageNote::Report`] | child, once the jail is built | |
//! | [`StageNote::Listening`] | stage, for a program that learns | the filter's listener |
//! | [`StageNote::Running`] | monitor, once the program was executed | a pidfd of the program, then its private directory if it has one |
//! | [`StageCommand::Signal`], [`StageCommand::KillAll`] | supervisor, at any time after | |
//! | [`StageNote::Ended`] | monitor, once | |
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

/// The largest packet. The longest is a failure's text of [`TEXT_MAX_BYTES`], six times as long if every byte
/// needs a JSON escape. A larger one is an error at the sender.
const PACKET_MAX_BYTES: usize = 16 << 10;

/// The longest text that a stage reports: a sentence and two paths of moderate length. Longer ones are cut.
const TEXT_MAX_BYTES: usize = 2 << 10;

/// The most descriptors with one packet: the spec and one for each [`DescriptorRole`].
const DESCRIPTORS_MAX: usize = 5;

/// The supervisor's request to its zygote, over a separate socket: make a stage from the three attached
/// descriptors, its control socket and the program's standard output and standard error.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StageRequest {
    /// The namespaces that it is cloned into.
    pub(crate) namespaces: Option<NamespaceRequest>,
    /// Whether it is a standby stage, which makes its mount namespace when there is a program for it.
    pub(crate) ahead: bool,
}

/// The namespaces that a spec requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamespaceRequest {
    /// Whether a network namespace is among them.
    pub(crate) network: bool,
    /// Whether its program gets a separate uid, which is impossible in our user namespace.
    pub(crate) own_uid: bool,
}

/// A command from the supervisor to a stage or monitor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum StageCommand {
    /// Build the jail of the attached spec, and execute the program. The other attached descriptors have
    /// these roles.
    Start(Vec<DescriptorRole>),
    /// Send the program and its process group this signal.
    Signal(i32),
    /// Kill everything that the program started, and the monitor itself.
    KillAll,
}

/// The role of a descriptor attached to [`StageCommand::Start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DescriptorRole {
    /// The program's file.
    Program,
    /// The file for the stage's progress.
    Progress,
    /// The program's standard input.
    Stdin,
    /// The `cgroup.procs` of its cgroup.
    Group,
}

/// A message from a stage or monitor to its supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum StageNote {
    /// The stage exists; its pidfd is attached.
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
    /// A filter that reports calls is loaded; its listener is attached. To the supervisor: that of a program
    /// that learns. To the monitor, over a channel of its own: that of a program whose sockets it makes.
    Listening,
    /// A socket listens on the program's loopback interface; it is attached.
    LoopbackListener,
    /// The program was executed.
    Running,
    /// The program has ended; its remaining processes are being killed.
    Ended(ExitStatus),
}

impl StageNote {
    pub(crate) fn failed(step: &str, reason: &str) -> Self {
        let end = reason.floor_char_boundary(TEXT_MAX_BYTES);
        Self::Failed { step: step.to_owned(), reason: reason[..end].to_owned() }
    }
}

/// One end for the supervisor, one for the stage. Both are close-on-exec; the stage gets its end as standard
/// input.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one packet without blocking. The few packets of a jail fit into the socket's buffer; a full buffer
/// means that the other side has stopped, which returns `WouldBlock`.
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

/// Sends a report: in one packet if it fits, and otherwise line by line.
pub(crate) fn send_report(socket: BorrowedFd<'_>, report: Vec<Protection>) -> io::Result<()> {
    let whole = StageNote::Report(report);
    match (send(socket, &whole, &[]), whole) {
        (Err(error), StageNote::Report(report)) if error.kind() == io::ErrorKind::InvalidInput => {
            report.into_iter().try_for_each(|line| send(socket, &StageNote::Report(vec![line]), &[]))
        }
        (sent, _) => sent,
    }
}

/// The result of receiving from the socket.
#[derive(Debug)]
pub(crate) enum ReceiveOutcome<M> {
    /// A packet, and the descriptors beside it.
    Packet(M, Vec<OwnedFd>),
    /// Nothing yet.
    Empty,
    /// The other side has closed, and everything it sent was read.
    Closed,
}

/// Receives the next packet, without waiting for one.
pub(crate) fn receive<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<ReceiveOutcome<M>> {
    receive_with(socket.as_fd(), RecvFlags::DONTWAIT)
}

/// Receives the next packet, and waits for it.
pub(crate) fn receive_waiting<M: DeserializeOwned>(socket: impl AsFd) -> io::Result<ReceiveOutcome<M>> {
    receive_with(socket.as_fd(), RecvFlags::empty())
}

fn receive_with<M: DeserializeOwned>(
    socket: BorrowedFd<'_>,
    flags: RecvFlags,
) -> io::Result<ReceiveOutcome<M>> {
    let mut packet = vec![0; PACKET_MAX_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut take = || {
        let mut parts = [IoSliceMut::new(&mut packet)];
        retry_on_intr(|| recvmsg(socket, &mut parts, &mut beside, flags | RecvFlags::CMSG_CLOEXEC))
    };
    let taken = match take() {
        // The other side closed with unread packets of ours. The kernel reports that once, before it delivers
        // what that side had sent earlier, which may be the exit status.
        Err(Errno::CONNRESET) => take(),
        other => other,
    };
    let taken = match taken {
        Ok(taken) => taken,
        Err(Errno::AGAIN) => return Ok(ReceiveOutcome::Empty),
        Err(Errno::CONNRESET | Errno::PIPE) => return Ok(ReceiveOutcome::Closed),
        Err(error) => return Err(error.into()),
    };
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(given) = message {
            descriptors.extend(given);
        }
    }
    if taken.bytes == 0 {
        return Ok(ReceiveOutcome::Closed);
    }
    // The buffer's size is rounded up, so there may be room for one descriptor more than agreed.
    let cut = taken.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    if cut || descriptors.len() > DESCRIPTORS_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet larger than the protocol allows"));
    }
    let message = serde_json::from_slice(&packet[..taken.bytes])?;
    Ok(ReceiveOutcome::Packet(message, descriptors))
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
