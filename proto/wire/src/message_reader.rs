//! Reads the one message of a request or an answer from the pieces in which it comes.

use prost::bytes::{Buf, BufMut, Bytes, BytesMut};

/// The size of the prefix of every message: compression flag and length.
pub const PREFIX_BYTES: usize = 5;

/// Why received bytes are not one whole message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageError {
    /// The announced length is over the limit. Nothing was allocated for it.
    TooLong {
        /// The announced length in bytes.
        length: usize,
    },
    /// It is compressed, without a header that names the encoding.
    Compressed,
    /// Its first byte, which says whether it is compressed, is neither 0 nor 1.
    UnknownFlag(u8),
    /// More bytes came after it.
    Continued,
    /// The stream ended within it.
    Partial,
    /// Nothing came.
    Missing,
}

/// The received part of a message. Mostly a single piece holds it all, and is not copied.
#[derive(Debug)]
pub struct MessageReader {
    limit: usize,
    /// The received part of an incomplete message.
    pieces: BytesMut,
    /// The length from the message's prefix.
    length: Option<usize>,
    whole: Option<Bytes>,
}

impl MessageReader {
    /// A reader of a message of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, pieces: BytesMut::new(), length: None, whole: None }
    }

    /// Adds the next piece.
    ///
    /// # Errors
    /// As soon as the pieces can be no message within the limit.
    pub fn push(&mut self, mut piece: Bytes) -> Result<(), MessageError> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.whole.is_some() {
            return Err(MessageError::Continued);
        }
        // Usually one piece holds the whole message.
        if self.pieces.is_empty() && self.length.is_none() && piece.len() >= PREFIX_BYTES {
            let length = self.read_prefix(&mut piece)?;
            if piece.len() >= length {
                return self.complete(piece, length);
            }
            self.expect(length);
        }
        self.pieces.put(piece);
        if self.length.is_none() && self.pieces.len() >= PREFIX_BYTES {
            let mut prefix = self.pieces.split_to(PREFIX_BYTES).freeze();
            let length = self.read_prefix(&mut prefix)?;
            self.expect(length);
        }
        match self.length {
            Some(length) if self.pieces.len() >= length => {
                let all = std::mem::take(&mut self.pieces).freeze();
                self.complete(all, length)
            }
            _ => Ok(()),
        }
    }

    /// The message, once the stream has ended.
    ///
    /// # Errors
    /// [`MessageError::Partial`] or [`MessageError::Missing`].
    pub fn finish(self) -> Result<Bytes, MessageError> {
        match self.whole {
            Some(whole) => Ok(whole),
            None if self.length.is_some() || !self.pieces.is_empty() => Err(MessageError::Partial),
            None => Err(MessageError::Missing),
        }
    }

    fn read_prefix(&self, prefix: &mut Bytes) -> Result<usize, MessageError> {
        match prefix.get_u8() {
            0 => {}
            1 => return Err(MessageError::Compressed),
            flag => return Err(MessageError::UnknownFlag(flag)),
        }
        let length = prefix.get_u32() as usize;
        if length > self.limit { Err(MessageError::TooLong { length }) } else { Ok(length) }
    }

    fn expect(&mut self, length: usize) {
        self.length = Some(length);
        self.pieces.reserve(length);
    }

    fn complete(&mut self, mut all: Bytes, length: usize) -> Result<(), MessageError> {
        let more = all.split_off(length);
        self.length = None;
        self.whole = Some(all);
        self.push(more)
    }
}
