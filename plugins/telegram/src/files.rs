//! Files that came with messages (<https://core.telegram.org/bots/api#getfile>).

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use talon_sink::delivery::Delivery;
use talon_sink::held_files::most_bytes;

use crate::api::{Api, ApiError};

/// The largest file that Telegram gives to bots.
const MAX_FILE_BYTES: u64 = 20_000_000;

/// What `getFile` says.
#[derive(Debug, Deserialize)]
struct FileInfo {
    #[serde(default)]
    file_size: Option<u64>,
    #[serde(default)]
    file_path: Option<String>,
}

/// Downloads a file of at most so many bytes, or of what Telegram gives.
pub(crate) async fn download(api: &Api, file: &str, max_bytes: u64) -> Result<Bytes, Delivery> {
    let most = most_bytes(max_bytes, MAX_FILE_BYTES);
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
}
