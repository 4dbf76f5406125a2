//! Files that are asked for piece by piece, and downloaded whole.

use std::collections::VecDeque;
use std::future::Future;

use bytes::Bytes;
use parking_lot::Mutex;
use talon_sdk::channel::{ChannelReply, ChannelRequest, MAX_PIECE_BYTES};

use crate::delivery::Delivery;

/// How many files are held until their last piece was asked for. 4: the files of one message are asked for one after the other, and of
/// a further conversation the oldest is downloaded again.
const MAX_HELD: usize = 4;

/// Files of which pieces were asked for.
#[derive(Debug, Default)]
pub struct HeldFiles(Mutex<VecDeque<(String, Bytes)>>);

impl HeldFiles {
    /// The piece that is asked for. A file that is not held is downloaded.
    pub async fn piece(
        &self,
        asked: &ChannelRequest,
        download: impl Future<Output = Result<Bytes, Delivery>>,
    ) -> ChannelReply {
        let bytes = match self.take(&asked.file) {
            Some(bytes) => bytes,
            None => match download.await {
                Ok(bytes) => bytes,
                Err(delivery) => return delivery.channel_reply(),
            },
        };
        let Some(rest) = usize::try_from(asked.offset).ok().and_then(|offset| bytes.get(offset..)) else {
            return ChannelReply::refused("the file has fewer bytes than were asked for before");
        };
        let piece = &rest[..rest.len().min(MAX_PIECE_BYTES)];
        let more = piece.len() < rest.len();
        let reply = ChannelReply::piece(piece, more);
        if more {
            self.hold(&asked.file, bytes);
        }
        reply
    }

    fn take(&self, file: &str) -> Option<Bytes> {
        let mut held = self.0.lock();
        let place = held.iter().position(|(id, _)| id == file)?;
        held.remove(place).map(|(_, bytes)| bytes)
    }

    fn hold(&self, file: &str, bytes: Bytes) {
        let mut held = self.0.lock();
        held.push_back((file.to_owned(), bytes));
        if held.len() > MAX_HELD {
            held.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use talon_sdk::channel::ChannelOp;

    use super::*;

    fn asked(file: &str, offset: usize) -> ChannelRequest {
        ChannelRequest {
            op: ChannelOp::Fetch,
            id: String::new(),
            conversation: String::new(),
            text: String::new(),
            buttons: Vec::new(),
            attempt: 0,
            file: file.to_owned(),
            offset: offset as u64,
            max_bytes: 0,
        }
    }

    // Promises: GW-228
    #[tokio::test]
    async fn a_file_is_downloaded_once_whatever_its_pieces() {
        let (held, whole) = (HeldFiles::default(), Bytes::from(vec![7; MAX_PIECE_BYTES + 3]));
        let first = held.piece(&asked("a", 0), async { Ok(whole.clone()) }).await;
        assert_eq!(first, ChannelReply::piece(&whole[..MAX_PIECE_BYTES], true));
        let second = held.piece(&asked("a", MAX_PIECE_BYTES), async { panic!("it is held") }).await;
        assert_eq!(second, ChannelReply::piece(&[7; 3], false));
        let gone = held.piece(&asked("a", 0), async { Err(Delivery::refused("gone")) }).await;
        assert_eq!(gone, ChannelReply::refused("gone"));
        let behind = held.piece(&asked("b", 9), async { Ok(Bytes::from_static(b"x")) }).await;
        assert!(!behind.is_delivered());
    }

    #[test]
    fn few_files_are_held() {
        let held = HeldFiles::default();
        for number in 0..=MAX_HELD {
            held.hold(&number.to_string(), Bytes::from_static(b"x"));
        }
        assert_eq!(held.take("0"), None);
        assert_eq!(held.take("1"), Some(Bytes::from_static(b"x")));
        assert_eq!(held.take("1"), None);
    }
}
