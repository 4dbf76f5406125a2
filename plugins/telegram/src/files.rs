//! Files that came with messages (<https://core.telegram.org/bots/api#getfile>), piece by piece.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use talon_sdk::channel::{ChannelReply, ChannelRequest, MAX_PIECE_BYTES};
use talon_sink::delivery::Delivery;

use crate::api::{Api, ApiError};

/// The largest file that Telegram gives to bots.
const MAX_FILE_BYTES: u64 = 20_000_000;
/// How many files are held until their last piece was asked for. 4: the files of one message are asked for one after the other, and of
/// a further conversation the oldest is downloaded again.
const MAX_HELD: usize = 4;

/// What `getFile` says.
#[derive(Debug, Deserialize)]
struct FileInfo {
    #[serde(default)]
    file_size: Option<u64>,
    #[serde(default)]
    file_path: Option<String>,
}

/// Files of which pieces were asked for.
#[derive(Debug, Default)]
pub(crate) struct HeldFiles(Mutex<VecDeque<(String, Bytes)>>);

impl HeldFiles {
    /// A piece of a file, which is downloaded with its first one.
    pub(crate) async fn piece(&self, api: &Api, asked: &ChannelRequest) -> ChannelReply {
        let held = self.take(&asked.file);
        let bytes = match held {
            Some(bytes) => bytes,
            None => match download(api, &asked.file, asked.max_bytes).await {
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

async fn download(api: &Api, file: &str, max_bytes: u64) -> Result<Bytes, Delivery> {
    let most = if max_bytes == 0 { MAX_FILE_BYTES } else { max_bytes.min(MAX_FILE_BYTES) };
    // Of a file that is too large for bots Telegram says so here.
    let info: Result<FileInfo, ApiError> =
        api.call("getFile", &json!({"file_id": file}), Duration::ZERO).await;
    let info = info.map_err(delivery)?;
    if let Some(bytes) = info.file_size.filter(|bytes| *bytes > most) {
        return Err(Delivery::refused(format!("it has {bytes} bytes, and may have {most}")));
    }
    let Some(path) = info.file_path.filter(|path| is_plain(path)) else {
        return Err(Delivery::refused("Telegram names no path of the file below its own"));
    };
    let bytes = api.download(&path, most).await.map_err(delivery)?;
    Ok(bytes.into())
}

fn delivery(error: ApiError) -> Delivery {
    match error {
        ApiError::Later { reason, after } => Delivery::Retry(reason, after),
        ApiError::Refused(reason) => Delivery::refused(reason),
        error => Delivery::retry(error.to_string()),
    }
}

/// Whether a path leads below the bot's files, and to nothing else.
fn is_plain(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    path.len() <= 512
        && path
            .split('/')
            .all(|part| !part.is_empty() && !part.chars().all(|c| c == '.') && part.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-232
    #[test]
    fn a_path_leads_nowhere_else() {
        assert!(is_plain("photos/file_0.jpg") && is_plain("a"));
        for wrong in ["", "/etc/passwd", "a/../b", "..", "a//b", "a?x=1", "a/b#c", "a b", &"x".repeat(600)] {
            assert!(!is_plain(wrong), "{wrong}");
        }
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
