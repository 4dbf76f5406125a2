//! Encodes a document with its descriptors into one descriptor, and decodes it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::{Packer, Unpacker};
use crate::memfd::{self, ReadError};

/// Maximum size of the document. It has a few hundred bytes per process, and there are at most some thousands
/// of processes. Larger ones are refused when sealing and when opening.
pub const MAX_DOCUMENT_BYTES: u64 = 16 << 20;

/// Maximum number of descriptors: one packet of sockets, each with a packet of `PER_PACKET`. The kernel's own
/// limit, the sender's `RLIMIT_NOFILE`, is reached first nearly everywhere; both are errors of [`seal`].
pub const MAX_DESCRIPTORS: usize = PER_PACKET * PER_PACKET;

/// Descriptors per packet: the kernel allows 253, and the first packet also has the document.
const PER_PACKET: usize = 250;

/// The first bytes of a bundle, with the version of this layout.
const MAGIC: [u8; 8] = *b"TALONPC1";

/// [`MAGIC`] and the number of descriptors.
const HEADER_BYTES: usize = MAGIC.len() + size_of::<u32>();

/// The number of a packet, from 0.
const NUMBER_BYTES: usize = size_of::<u32>();

/// Why the bundle was not sealed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The document has more than [`MAX_DOCUMENT_BYTES`].
    #[error("the document has {0} bytes, and at most {MAX_DOCUMENT_BYTES} fit")]
    Document(u64),
    /// There are more than [`MAX_DESCRIPTORS`].
    #[error("there are {0} descriptors, and at most {MAX_DESCRIPTORS} fit")]
    Descriptors(usize),
    /// The kernel refuses more descriptors in flight.
    #[error("{0} descriptors are more than may be under way at once: raise LimitNOFILE= (ulimit -n)")]
    InFlight(usize),
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Why a bundle was not opened. All its received descriptors are closed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It holds no packet.
    #[error("the parcel is empty")]
    Empty,
    /// It does not start with the magic bytes.
    #[error("this is no parcel, or one of a version that is not understood")]
    NotABundle,
    /// It announces more than [`MAX_DESCRIPTORS`] descriptors, or has more than [`MAX_DOCUMENT_BYTES`] of
    /// document.
    #[error("the parcel is too large")]
    TooLarge,
    /// A part is missing, also if this process has too few free descriptors.
    #[error("the parcel is not whole: {0}")]
    Truncated(&'static str),
    /// The document is not sealed.
    #[error("the parcel's document is not sealed")]
    Unsealed,
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Makes one descriptor of a document and its descriptors. Never blocks.
///
/// # Errors
/// [`SealError`]; the descriptors are closed then.
pub fn seal(document: &[u8], packer: Packer) -> Result<OwnedFd, SealError> {
    let failed = |what| move |source| SealError::Io { what, source };
    let descriptors = packer.into_descriptors();
    let bytes = u64::try_from(document.len()).unwrap_or(u64::MAX);
    if bytes > MAX_DOCUMENT_BYTES {
        return Err(SealError::Document(bytes));
    }
    let count = u32::try_from(descriptors.len()).unwrap_or(u32::MAX);
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(SealError::Descriptors(descriptors.len()));
    }
    let under_way = |source: io::Error| match Errno::from_io_error(&source) {
        Some(Errno::TOOMANYREFS) => SealError::InFlight(descriptors.len()),
        _ => SealError::Io { what: "put descriptors into the parcel", source },
    };
    let mut first =
        vec![memfd::seal("talon-parcel", document).map_err(failed("keep the document in memory"))?];
    for (number, chunk) in (0_u32..).zip(descriptors.chunks(PER_PACKET)) {
        first.push(with_packet(&number.to_le_bytes(), chunk).map_err(under_way)?);
    }
    let mut header = [0; HEADER_BYTES];
    let (magic, rest) = header.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    rest.copy_from_slice(&count.to_le_bytes());
    with_packet(&header, &first).map_err(under_way)
}

/// Opens a bundle without changing it. Never blocks.
///
/// # Errors
/// [`OpenError`]
pub fn open(parcel: BorrowedFd<'_>) -> Result<(Vec<u8>, Unpacker), OpenError> {
    let mut header = [0; HEADER_BYTES];
    let mut first = peek_packet(parcel, &mut header)?.into_iter();
    let (magic, count) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(OpenError::NotABundle);
    }
    let count = count.try_into().map(u32::from_le_bytes).map_err(|_| OpenError::NotABundle)?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > MAX_DESCRIPTORS {
        return Err(OpenError::TooLarge);
    }
    let document = read(first.next().ok_or(OpenError::Truncated("it has no document"))?)?;
    let mut descriptors = Vec::with_capacity(count);
    for (expected, packet) in (0_u32..).zip(first) {
        let mut number = [0; NUMBER_BYTES];
        let chunk = peek_packet(packet.as_fd(), &mut number)?;
        if u32::from_le_bytes(number) != expected {
            return Err(OpenError::Truncated("its packets are not in order"));
        }
        if descriptors.len() + chunk.len() > count {
            return Err(OpenError::TooLarge);
        }
        descriptors.extend(chunk);
    }
    if descriptors.len() != count {
        return Err(OpenError::Truncated("descriptors are missing"));
    }
    Ok((document, Unpacker::new(descriptors)))
}

/// A socket that holds one packet.
fn with_packet(bytes: &[u8], descriptors: &[OwnedFd]) -> io::Result<OwnedFd> {
    let (keeps, sends) = crate::pair()?;
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PER_PACKET + 1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        let fits = ancillary.push(SendAncillaryMessage::ScmRights(&borrowed));
        debug_assert!(fits, "callers keep to PER_PACKET and one more");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    retry_on_intr(|| sendmsg(&sends, &[IoSlice::new(bytes)], &mut ancillary, flags))?;
    Ok(keeps)
}

/// Peeks at the packet of a socket: exactly these bytes, and its descriptors.
fn peek_packet(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<Vec<OwnedFd>, OpenError> {
    let expected = bytes.len();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PER_PACKET + 1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, flags))
        .map_err(|error| match error {
            Errno::AGAIN => OpenError::Empty,
            error => OpenError::Io { what: "look into the parcel", source: error.into() },
        })?;
    // Taken first, so that they are closed if the rest is invalid.
    let rights = |message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    };
    let descriptors = ancillary.drain().filter_map(rights).flatten().collect();
    if received.bytes == 0 {
        return Err(OpenError::Empty);
    }
    if received.bytes != expected || received.flags.contains(ReturnFlags::TRUNC) {
        return Err(OpenError::NotABundle);
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(OpenError::Truncated(
            "not all of its descriptors could be received; see the open files limit",
        ));
    }
    Ok(descriptors)
}

fn read(document: OwnedFd) -> Result<Vec<u8>, OpenError> {
    memfd::read(document, MAX_DOCUMENT_BYTES).map_err(|error| match error {
        ReadError::Unsealed => OpenError::Unsealed,
        ReadError::TooLarge(_) => OpenError::TooLarge,
        ReadError::Io(source) => OpenError::Io { what: "read the parcel's document", source },
    })
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
