//! The control protocol between a supervisor and its own child processes: a seqpacket socket, one protobuf
//! message per packet, with at most one descriptor.
//!
//! Packets are delivered whole or not at all, so there is no framing, and a descriptor arrives with the
//! message that explains it. End of file on the socket tells each side that the other has ended.

pub mod fd_bundle;
pub mod memfd;

use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use prost::Message;
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};
use tokio::io::unix::AsyncFd;

/// Maximum size of a message. Messages hold names, paths and numbers. The sender refuses a larger one, and
/// the receiver reports an error.
pub const MAX_PACKET_BYTES: usize = 64 << 10;

/// Why a packet was not sent or received. The other side must not be trusted after this.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The message is larger than [`MAX_PACKET_BYTES`].
    #[error("a control message has {0} bytes, and at most {MAX_PACKET_BYTES} fit")]
    TooLarge(usize),
    /// The packet is not a valid message.
    #[error("a control message cannot be read: {0}")]
    Malformed(#[from] prost::DecodeError),
    /// The message exceeds the maximum size, so it was truncated.
    #[error("a control message was cut off")]
    Truncated,
    /// The socket failed.
    #[error("the control socket failed: {0}")]
    Socket(#[from] io::Error),
}

/// One end of the socket, which sends `Out` and receives `In`.
#[derive(Debug)]
pub struct Control<Out, In> {
    socket: AsyncFd<OwnedFd>,
    messages: PhantomData<fn(Out) -> In>,
}

/// A message with its descriptor.
#[derive(Debug)]
pub struct Packet<In> {
    /// The message.
    pub message: In,
    /// The descriptor, closed on exec. Also `None` if this process has too many open files.
    pub descriptor: Option<OwnedFd>,
}

/// Two ends; the second is for a child, for example as its standard input. Both are closed on exec.
///
/// # Errors
/// When there are too many open files.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl<Out: Message, In: Message + Default> Control<Out, In> {
    /// Takes over one end. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When it is no socket, or cannot be watched.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for descriptors that may be closed while they are watched; this one is owned exclusively"
    )]
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { socket: AsyncFd::new(socket)?, messages: PhantomData })
    }

    /// Sends a message with an optional descriptor. Waits while the other side is slow.
    ///
    /// # Errors
    /// [`ControlError::Socket`] also when the other side is gone.
    pub async fn send(&self, message: &Out, descriptor: Option<BorrowedFd<'_>>) -> Result<(), ControlError> {
        let bytes = message.encode_to_vec();
        if bytes.len() > MAX_PACKET_BYTES {
            return Err(ControlError::TooLarge(bytes.len()));
        }
        loop {
            let mut ready = self.socket.writable().await?;
            if let Ok(sent) = ready.try_io(|socket| send_packet(socket.get_ref().as_fd(), &bytes, descriptor))
            {
                return Ok(sent?);
            }
        }
    }

    /// Tells the other side that this one has ended, which may go on sending.
    ///
    /// # Errors
    /// When the other side is gone.
    pub fn end_sending(&self) -> io::Result<()> {
        Ok(shutdown(self.socket.get_ref(), Shutdown::Write)?)
    }

    /// The next message; `None` when the other side is gone, and all that it sent was received.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn receive(&self) -> Result<Option<Packet<In>>, ControlError> {
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        loop {
            let mut ready = self.socket.readable().await?;
            let Ok(received) = ready.try_io(|socket| receive_packet(socket.get_ref().as_fd(), &mut buffer))
            else {
                continue;
            };
            let ReceivedPacket { bytes, whole, descriptor } = match received {
                // The other side closed its end while packets of ours were unread. It is said once; its own packets, and then the end,
                // come after it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => continue,
                received => received?,
            };
            if !whole {
                return Err(ControlError::Truncated);
            }
            // A valid message is never empty: its `what` is always set.
            if bytes == 0 {
                return Ok(None);
            }
            let message = In::decode(buffer.get(..bytes).unwrap_or_default())?;
            return Ok(Some(Packet { message, descriptor }));
        }
    }
}

fn send_packet(socket: BorrowedFd<'_>, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.map(|descriptor| [descriptor]);
    if let Some(descriptors) = &descriptors {
        let fits = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        debug_assert!(fits, "the space is made for one descriptor");
    }
    retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(())
}

struct ReceivedPacket {
    bytes: usize,
    whole: bool,
    descriptor: Option<OwnedFd>,
}

fn receive_packet(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<ReceivedPacket> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.by_ref().flatten().next();
    let cut = received.flags.contains(ReturnFlags::TRUNC);
    Ok(ReceivedPacket { bytes: received.bytes, whole: !cut, descriptor })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use talon_proto::state::{DetachPlugin, FromState, ToState, to_state};

    use super::*;

    type Ours = Control<ToState, FromState>;
    type Theirs = Control<FromState, ToState>;

    fn ends() -> (Ours, Theirs) {
        let (ours, theirs) = pair().unwrap();
        (Control::new(ours).unwrap(), Control::new(theirs).unwrap())
    }

    fn detach(id: u64) -> ToState {
        ToState { kind: Some(to_state::Kind::DetachPlugin(DetachPlugin { id })) }
    }

    #[tokio::test]
    async fn messages_arrive_one_by_one_and_then_the_end() {
        let (ours, theirs) = ends();
        for id in 0..3 {
            ours.send(&detach(id), None).await.unwrap();
        }
        drop(ours);
        for id in 0..3 {
            let packet = theirs.receive().await.unwrap().unwrap();
            assert_eq!(packet.message, detach(id));
            assert!(packet.descriptor.is_none());
        }
        assert!(theirs.receive().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn what_was_sent_arrives_though_its_sender_is_gone_and_has_read_nothing() {
        let (ours, theirs) = ends();
        theirs.send(&FromState::default(), None).await.unwrap();
        for id in 0..3 {
            ours.send(&detach(id), None).await.unwrap();
        }
        drop(ours);
        for id in 0..3 {
            assert_eq!(theirs.receive().await.unwrap().unwrap().message, detach(id));
        }
        assert!(theirs.receive().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn who_ends_sending_still_receives() {
        let (ours, theirs) = ends();
        theirs.end_sending().unwrap();
        assert!(ours.receive().await.unwrap().is_none());
        ours.send(&detach(1), None).await.unwrap();
        drop(ours);
        assert_eq!(theirs.receive().await.unwrap().unwrap().message, detach(1));
        assert!(theirs.receive().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_descriptor_comes_with_its_message() {
        let (ours, theirs) = ends();
        let (mut kept, handed) = UnixStream::pair().unwrap();
        ours.send(&detach(1), Some(handed.as_fd())).await.unwrap();
        drop(handed);
        let packet = theirs.receive().await.unwrap().unwrap();
        let mut taken = UnixStream::from(packet.descriptor.unwrap());
        taken.write_all(b"hello").unwrap();
        drop(taken);
        let mut text = String::new();
        kept.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[tokio::test]
    async fn what_is_too_large_is_refused_by_its_sender_and_what_is_no_message_by_its_receiver() {
        let (ours, theirs) = ends();
        let attach = talon_proto::state::AttachPlugin {
            plugin: "x".repeat(MAX_PACKET_BYTES),
            ..talon_proto::state::AttachPlugin::default()
        };
        let large = ToState { kind: Some(to_state::Kind::AttachPlugin(attach)) };
        assert!(matches!(ours.send(&large, None).await, Err(ControlError::TooLarge(_))));
        send_packet(ours.socket.get_ref().as_fd(), &[0xff; 9], None).unwrap();
        assert!(matches!(theirs.receive().await, Err(ControlError::Malformed(_))));
        send_packet(ours.socket.get_ref().as_fd(), &vec![0; MAX_PACKET_BYTES + 1], None).unwrap();
        assert!(matches!(theirs.receive().await, Err(ControlError::Truncated)));
    }

    #[tokio::test]
    async fn a_sender_waits_for_a_slow_receiver_and_learns_of_one_that_is_gone() {
        let (ours, theirs) = ends();
        let sending = async {
            for id in 0..10_000 {
                ours.send(&detach(id), None).await.unwrap();
            }
        };
        let receiving = async {
            for id in 0..10_000 {
                assert_eq!(theirs.receive().await.unwrap().unwrap().message, detach(id));
            }
        };
        tokio::join!(sending, receiving);
        drop(theirs);
        assert!(matches!(ours.send(&detach(0), None).await, Err(ControlError::Socket(_))));
    }
}
