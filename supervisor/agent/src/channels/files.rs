//! Files that came with a message: fetched from its plugin, within the operator's limits.

use std::time::Duration;

use talon_agent_settings::MediaKeys;
use talon_extensions::contract::{
    ChannelFile, ChannelOp, ChannelOutcome, ChannelReply, ChannelRequest, FilePiece,
};
use talon_proto::agent::Media;
use talon_sanitize::Raw;
use talon_store::Error;
use tokio::time::sleep;
use tonic::Status;

use super::outbound::wait;
use super::pending::PendingMessage;
use super::send::call;
use super::service::Channels;
use crate::error_status::store_error_status;
use crate::media::{AcceptedMedia, accept};

/// How often a piece is asked for. 4, within 14 s: somebody waits, and is told when the file cannot be had.
const MAX_ATTEMPTS: u32 = 4;
/// The longest wait between two of these attempts that a plugin may want.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How much of a file's name is shown.
const MAX_NAME_BYTES: usize = 128;
/// How much of a reason is shown.
const MAX_REASON_BYTES: usize = 300;

/// The files of a message.
#[derive(Debug, Default)]
pub(super) struct FetchedFiles {
    /// Those that are passed on.
    pub(super) media: AcceptedMedia,
    /// One line for each other one: which it is, and why.
    pub(super) left_out: Vec<String>,
}

impl FetchedFiles {
    /// Takes a file, if it fits beside those that are there already.
    fn add(&mut self, file: Media, keys: &MediaKeys) -> Result<(), String> {
        let AcceptedMedia { images, files } = accept(vec![file], keys).map_err(|error| error.to_string())?;
        let most = |key: u32| usize::try_from(key).unwrap_or(usize::MAX);
        let own = &mut self.media;
        if own.images.len() + images.len() > most(keys.images) {
            return Err(format!("one message may have {} images (agent.media.images)", keys.images));
        }
        if own.files.len() + files.len() > most(keys.files) {
            return Err(format!("one message may have {} files (agent.media.files)", keys.files));
        }
        let bytes = |media: &AcceptedMedia| {
            let images = media.images.iter().map(|(_, bytes)| bytes.len());
            images.chain(media.files.iter().map(|(_, bytes)| bytes.len())).sum::<usize>()
        };
        let new = AcceptedMedia { images, files };
        if bytes(own) + bytes(&new) > most(keys.request_bytes) {
            let most = keys.request_bytes;
            return Err(format!(
                "the files of one message may have {most} bytes together (agent.media.request_bytes)"
            ));
        }
        own.images.extend(new.images);
        own.files.extend(new.files);
        Ok(())
    }

    /// What stands behind the message's text, for the model.
    pub(super) fn note(&self) -> String {
        self.left_out.iter().map(|line| format!("\n\n(A file was not passed on: {line}.)")).collect()
    }

    /// What who sent them is told; `None` if all are passed on.
    pub(super) fn notice(&self) -> Option<String> {
        (!self.left_out.is_empty()).then(|| format!("⚠️ Not passed on: {}.", self.left_out.join("; ")))
    }
}

impl Channels {
    /// Fetches the files of a message, and stores those that are passed on with its session.
    ///
    /// # Errors
    /// Those of the store. A file that cannot be had is none of them.
    pub(super) async fn fetch_files(
        &self,
        message: &PendingMessage,
        session: &str,
    ) -> Result<FetchedFiles, Status> {
        let keys = self.agent.setup().settings.agent.media;
        let mut fetched = FetchedFiles::default();
        for (number, file) in message.files.iter().enumerate() {
            let name = Raw::from(file.name.as_str()).line_within(MAX_NAME_BYTES).into_string();
            let name = if name.trim().is_empty() { format!("file {}", number + 1) } else { name };
            let taken = match self.fetch_file(message, file, &keys).await {
                Ok(data) => fetched.add(Media { data, name: name.clone() }, &keys),
                Err(why) => Err(why),
            };
            if let Err(why) = taken {
                let why = Raw::from(why).line_within(MAX_REASON_BYTES).into_string();
                let (channel, id) = (&message.channel, &message.id);
                tracing::warn!(channel, id, why, "a file of a message is not passed on");
                // Some reasons name the file by themselves.
                fetched.left_out.push(if why.contains(&name) { why } else { format!("{name}: {why}") });
            }
        }
        let media = &self.agent.media;
        let stored = async {
            media.add(session, &fetched.media.images).await?;
            media.add_files(session, &fetched.media.files).await
        };
        match stored.await {
            Ok(()) => Ok(fetched),
            Err(Error::Quota { .. }) => {
                let why = "there is no more room for files (agent.media.total_bytes)".to_owned();
                Ok(FetchedFiles { left_out: vec![why], ..FetchedFiles::default() })
            }
            Err(error) => Err(store_error_status(&error)),
        }
    }

    /// The bytes of a file, or why there are none.
    async fn fetch_file(
        &self,
        message: &PendingMessage,
        file: &ChannelFile,
        keys: &MediaKeys,
    ) -> Result<Vec<u8>, String> {
        // Whether it is an image is known by its bytes.
        let most = u64::from(keys.image_bytes.max(keys.file_bytes));
        let too_large = |bytes: u64| {
            format!(
                "it has {bytes} bytes or more, and a file may have {most} (agent.media.image_bytes, agent.media.file_bytes)"
            )
        };
        if let Some(bytes) = file.bytes.filter(|bytes| *bytes > most) {
            return Err(too_large(bytes));
        }
        let mut data = Vec::new();
        loop {
            let piece = self.fetch_piece(message, file, data.len() as u64, most).await?;
            data.extend(piece.bytes);
            if data.len() as u64 > most {
                return Err(too_large(data.len() as u64));
            }
            if !piece.more {
                return Ok(data);
            }
        }
    }

    async fn fetch_piece(
        &self,
        message: &PendingMessage,
        file: &ChannelFile,
        offset: u64,
        max_bytes: u64,
    ) -> Result<FilePiece, String> {
        let request = ChannelRequest {
            file: file.id.clone(),
            offset,
            max_bytes,
            ..ChannelRequest::of(ChannelOp::Fetch)
        };
        let mut attempt = 0;
        loop {
            let Some(entry) = self.entry(&message.channel) else {
                return Err("its channel is not configured any more".to_owned());
            };
            attempt += 1;
            let asked = call(&*self.host, &entry, &request).await;
            let (reason, after) = match asked.and_then(|structured| ChannelReply::piece(&structured)) {
                Ok(piece) => return Ok(piece),
                Err(ChannelOutcome::Refused(reason)) => return Err(reason),
                Err(ChannelOutcome::Retry { reason, after }) => (reason, after.unwrap_or_default()),
                Err(ChannelOutcome::Sent(_)) => {
                    ("its answer has no piece of a file".to_owned(), Duration::ZERO)
                }
            };
            if attempt >= MAX_ATTEMPTS {
                return Err(reason);
            }
            sleep(wait(attempt).max(after.min(MAX_WAIT))).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, bytes: usize) -> Media {
        Media { data: vec![b'x'; bytes], name: name.to_owned() }
    }

    // Promises: GW-229
    #[test]
    fn what_does_not_fit_is_left_out_and_said_with_the_key() {
        let keys = MediaKeys { files: 2, file_bytes: 1500, request_bytes: 2000, ..MediaKeys::default() };
        let mut fetched = FetchedFiles::default();
        assert!(fetched.note().is_empty() && fetched.notice().is_none());
        fetched.add(text("a.txt", 1200), &keys).expect("it fits");
        for (file, key) in [
            (text("b.txt", 1000), "agent.media.request_bytes"),
            (text("c.txt", 1600), "agent.media.file_bytes"),
        ] {
            assert!(fetched.add(file, &keys).expect_err("too much").contains(key), "{key}");
        }
        fetched.add(text("d.txt", 700), &keys).expect("it fits");
        assert!(fetched.add(text("e.txt", 1), &keys).expect_err("too many").contains("agent.media.files"));
        assert_eq!(fetched.media.files.len(), 2);
        fetched.left_out.push("e.txt: too many".to_owned());
        assert_eq!(fetched.note(), "\n\n(A file was not passed on: e.txt: too many.)");
        assert_eq!(fetched.notice().as_deref(), Some("⚠️ Not passed on: e.txt: too many."));
    }
}
