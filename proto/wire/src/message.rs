//! The encoding of a gRPC message: a compression flag, its length, and its bytes.

use h2::RecvStream;
use prost::Message;
use prost::bytes::{BufMut, Bytes, BytesMut};
use tonic::Status;

pub use crate::message_reader::PREFIX_BYTES;
use crate::message_reader::{MessageError, MessageReader};

/// Encodes a message for the wire.
///
/// # Panics
/// Never: the buffer has the size that the message reports.
#[must_use]
pub fn framed(message: &impl Message) -> Bytes {
    let mut frame = with_prefix(message.encoded_len());
    message.encode(&mut frame).expect("there is room for what it said it needs");
    frame.freeze()
}

/// The same for a message that is encoded already.
#[must_use]
pub fn framed_bytes(message: &[u8]) -> Bytes {
    let mut frame = with_prefix(message.len());
    frame.put_slice(message);
    frame.freeze()
}

fn with_prefix(length: usize) -> BytesMut {
    let mut frame = BytesMut::with_capacity(PREFIX_BYTES + length);
    frame.put_u8(0);
    // Both sides refuse messages long before 4 GiB.
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    frame
}

/// Reads a request, which is one message of at most `limit` bytes.
///
/// # Errors
/// The status for a client that sent something else, or whose stream broke: OUT_OF_RANGE if the message is
/// longer.
pub async fn read<M: Message + Default>(from: RecvStream, limit: usize) -> Result<M, Status> {
    read_counted(from, limit, |_| Ok(())).await
}

/// The same; each piece is counted before it is kept.
///
/// # Errors
/// As [`read`], and those of `count`.
pub async fn read_counted<M: Message + Default>(
    mut from: RecvStream,
    limit: usize,
    mut count: impl FnMut(usize) -> Result<(), Status>,
) -> Result<M, Status> {
    let refused = |error| refused(error, limit);
    let mut reader = MessageReader::new(limit);
    while let Some(piece) = from.data().await {
        let piece = piece.map_err(Status::from)?;
        count(piece.len())?;
        // It fails only if the stream is over, and then nothing more comes.
        let _ = from.flow_control().release_capacity(piece.len());
        reader.push(piece).map_err(refused)?;
    }
    let message = reader.finish().map_err(refused)?;
    M::decode(message).map_err(|error| Status::internal(error.to_string()))
}

fn refused(error: MessageError, limit: usize) -> Status {
    match error {
        MessageError::TooLong { length } => {
            Status::out_of_range(format!("the request has {length} bytes, and at most {limit} are taken"))
        }
        MessageError::Continued => Status::internal("the request continues after its message"),
        MessageError::Compressed => Status::internal("the request is compressed, and does not say how"),
        MessageError::UnknownFlag(_) | MessageError::Partial | MessageError::Missing => {
            Status::internal("the request is no whole message")
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    /// Receives bytes in pieces of `step`.
    fn taken(bytes: &[u8], step: usize, limit: usize) -> Result<Bytes, Status> {
        let mut reader = MessageReader::new(limit);
        for piece in bytes.chunks(step) {
            reader.push(Bytes::copy_from_slice(piece)).map_err(|error| refused(error, limit))?;
        }
        reader.finish().map_err(|error| refused(error, limit))
    }

    #[test]
    fn a_message_is_the_same_in_whatever_pieces_it_comes() {
        let message = "what is said".to_owned();
        let wire = framed(&message);
        for step in 1..=wire.len() {
            let taken = taken(&wire, step, 100).expect("it is whole");
            assert_eq!(String::decode(taken).expect("it is one"), message);
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for (wire, code) in [
            (&b""[..], Code::Internal),
            (b"\0\0\0", Code::Internal),
            (b"\0\0\0\0\x02x", Code::Internal),
            (b"\0\0\0\0\x01xy", Code::Internal),
            (b"\x01\0\0\0\x01x", Code::Internal),
            (b"\x07\0\0\0\x01x", Code::Internal),
            (b"\0\0\0\0\x0bhello world", Code::OutOfRange),
            (b"\0\xff\xff\xff\xff", Code::OutOfRange),
        ] {
            for step in [1, 5, 100] {
                assert_eq!(taken(wire, step, 10).expect_err("refused").code(), code, "{wire:?}");
            }
        }
    }
}
