//! One message on a connection: its length in four bytes, big-endian, and that many bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest message in both directions: the protocol's own limit, so that no program sends or takes more.
/// A longer request is not sent; of a longer response only the length is read.
pub(crate) const MAX_FRAME_BYTES: usize = 4 << 20;

const LENGTH_BYTES: usize = 4;

/// Why a message was not transferred.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// The request is too long.
    #[error("the call has {0} bytes, and this protocol takes {MAX_FRAME_BYTES}: send less at once")]
    TooLarge(usize),
    /// The response is too long, or not a message at all.
    #[error(
        "it announces an answer of {0} bytes, and this protocol takes {MAX_FRAME_BYTES}: ask for less at once, or let it answer in the protocol of OpenTalon v0.0.1"
    )]
    TooLong(u32),
    /// The connection ended instead of a response.
    #[error("it closed the connection without an answer; its log may say why")]
    Closed,
    /// The connection ended within a response.
    #[error(
        "it closed the connection in the middle of its answer, after {got} of {of} bytes; its log may say why"
    )]
    Cut {
        /// The bytes received.
        got: usize,
        /// The bytes announced.
        of: usize,
    },
    /// An I/O error.
    #[error("its connection broke: {0}; its log may say why")]
    Io(#[from] io::Error),
}

/// Sends one message.
pub(crate) async fn write(stream: &mut (impl AsyncWrite + Unpin), body: &[u8]) -> Result<(), FrameError> {
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_FRAME_BYTES);
    let length = length.ok_or(FrameError::TooLarge(body.len()))?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(body).await?;
    Ok(())
}

/// Reads one message. Allocates memory as its bytes arrive, not as they are announced.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, FrameError> {
    let mut length = Vec::with_capacity(LENGTH_BYTES);
    match read_up_to(stream, LENGTH_BYTES, &mut length).await? {
        0 => return Err(FrameError::Closed),
        LENGTH_BYTES => {}
        got => return Err(FrameError::Cut { got, of: LENGTH_BYTES }),
    }
    let length = length.iter().fold(0_u32, |length, byte| (length << 8) | u32::from(*byte));
    let of = usize::try_from(length).ok().filter(|length| *length <= MAX_FRAME_BYTES);
    let of = of.ok_or(FrameError::TooLong(length))?;
    let mut body = Vec::new();
    match read_up_to(stream, of, &mut body).await? {
        got if got == of => Ok(body),
        got => Err(FrameError::Cut { got, of }),
    }
}

/// Reads this many bytes, or up to the end of the stream.
async fn read_up_to(
    stream: &mut (impl AsyncRead + Unpin),
    bytes: usize,
    into: &mut Vec<u8>,
) -> io::Result<usize> {
    let limit = u64::try_from(bytes).unwrap_or(u64::MAX);
    match stream.take(limit).read_to_end(into).await {
        // A peer that closes a socket with unread data resets it, which also is an end.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(into.len()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reads(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut from = bytes;
        read(&mut from).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn what_is_written_is_read() {
        for body in [&b""[..], b"{}", &[7; 70_000]] {
            let mut wire = Vec::new();
            write(&mut wire, body).await.unwrap();
            assert_eq!(wire.len(), body.len() + 4);
            assert_eq!(reads(&wire).await.unwrap(), body);
        }
        let mut wire = Vec::new();
        write(&mut wire, b"ab").await.unwrap();
        assert_eq!(wire, [0, 0, 0, 2, b'a', b'b']);
    }

    #[tokio::test]
    async fn what_is_too_long_is_neither_sent_nor_read() {
        let mut wire = Vec::new();
        let refused = write(&mut wire, &vec![b'x'; MAX_FRAME_BYTES + 1]).await.unwrap_err().to_string();
        assert!(refused.contains("4194305 bytes") && wire.is_empty(), "{refused}");
        assert!(write(&mut wire, &vec![b'x'; MAX_FRAME_BYTES]).await.is_ok());
        for length in [u32::MAX, 4_194_305, u32::from_be_bytes(*b"HTTP")] {
            let refused = reads(&length.to_be_bytes()).await.unwrap_err();
            assert!(refused.contains(&format!("{length} bytes")), "{refused}");
        }
    }

    #[tokio::test]
    async fn an_end_says_where_it_came() {
        assert!(reads(b"").await.unwrap_err().contains("without an answer"));
        assert!(reads(b"\0\0").await.unwrap_err().contains("after 2 of 4 bytes"));
        assert!(reads(b"\0\0\0\x09abc").await.unwrap_err().contains("after 3 of 9 bytes"));
    }
}
