//! Messages on a stream: four bytes of length, and JSON.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest message. 8 MiB: a source of 1 MiB of characters that JSON writes as six, and some.
const MAX_BYTES: usize = 8 << 20;

/// A message with its length.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    let length = u32::try_from(length).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

fn length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(head) as usize;
    if length > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    Ok(length)
}

/// The next message; `None` at the end.
pub(crate) fn read<M: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<M>> {
    let mut head = [0; 4];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut bytes = vec![0; length(head)?];
    from.read_exact(&mut bytes)?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// The next message; `None` at the end.
pub(crate) async fn read_async<M: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<M>> {
    let mut head = [0; 4];
    match from.read_exact(&mut head).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => {
            let _ = read?;
        }
    }
    let mut bytes = vec![0; length(head)?];
    let _ = from.read_exact(&mut bytes).await?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// Writes a message.
pub(crate) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&encode(message)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_too_long_ones_are_refused() {
        let mut bytes = Vec::new();
        write(&mut bytes, &"ä\0".to_owned()).expect("it is short");
        write(&mut bytes, &7_u8).expect("it is short");
        let mut reader = bytes.as_slice();
        assert_eq!(read::<String>(&mut reader).expect("a message").as_deref(), Some("ä\0"));
        assert_eq!(read::<u8>(&mut reader).expect("a message"), Some(7));
        assert_eq!(read::<u8>(&mut reader).expect("the end"), None);
        let too_long = u32::try_from(MAX_BYTES + 1).expect("it fits").to_be_bytes();
        assert!(read::<u8>(&mut too_long.as_slice()).is_err());
        assert!(encode(&"x".repeat(MAX_BYTES)).is_err());
    }
}
