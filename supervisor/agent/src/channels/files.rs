//! Files that came with a message: fetched from its plugin, within the operator's limits.

use std::slice;
use std::time::Duration;

use talon_agent_settings::MediaKeys;
use talon_extensions::contract::{
    ChannelFile, ChannelOp, ChannelOutcome, ChannelReply, ChannelRequest, FilePiece,
};
use talon_llm::model::Image;
use talon_proto::agent::Media;
use talon_sanitize::Raw;
use talon_store::{Error, SessionId, Sessions};
use tokio::time::{Instant, sleep, timeout_at};
use tonic::Status;

use super::fetch_places::FetchPlace;
use super::outbound::wait;
use super::pending::PendingMessage;
use super::send::call;
use super::service::Channels;
use super::store::ChannelStore;
use crate::error_status::store_error_status;
use crate::media::{AcceptedMedia, Attachment, accept};
use crate::media_store::MediaStore;

/// How long all files of a message may take. 3 min: somebody waits, and is told which did not come.
const FETCH_TIME: Duration = Duration::from_secs(180);
/// How often a piece is asked for.
const MAX_ATTEMPTS: u32 = 4;
/// The longest wait between two of these attempts that a plugin may want.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How much of a file's name is shown.
const MAX_NAME_BYTES: usize = 128;
/// How much of a reason is shown.
const MAX_REASON_BYTES: usize = 300;
/// Why a file is left out that cannot be stored.
const NO_ROOM: &str = "there is no more room for files (agent.media.total_bytes)";

/// The files of a message, however often it is tried to ask it.
#[derive(Debug, Default)]
pub(super) struct MessageFiles {
    /// Those that the store did not take yet, with the place that they need as long as they are held.
    fetched: Option<(FetchedFiles, FetchPlace)>,
    stored: Option<StoredFiles>,
}

/// The files of a message with their bytes.
#[derive(Debug, Default)]
struct FetchedFiles {
    /// Those that are passed on.
    media: AcceptedMedia,
    /// One line for each other one: which it is, and why.
    left_out: Vec<String>,
}

/// Where the files of messages are stored, and what they belong to.
struct FileStore<'s> {
    media: &'s MediaStore,
    sessions: &'s dyn Sessions,
    rows: &'s ChannelStore,
}

/// The files of a message, whose bytes are stored with its session.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredFiles {
    /// `None` without files.
    pub(super) session: Option<SessionId>,
    pub(super) images: Vec<Image>,
    pub(super) attachments: Vec<Attachment>,
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
}

impl FileStore<'_> {
    /// Stores the files of a message with its session. Those for which there is no room are left out. `false` if the message or the session
    /// was forgotten meanwhile; then nothing is stored.
    async fn put(
        &self,
        message: &PendingMessage,
        session: SessionId,
        fetched: &mut FetchedFiles,
    ) -> Result<bool, Error> {
        if !self.rows.has(message).await? || self.sessions.get(session).await?.is_none() {
            return Ok(false);
        }
        let id = session.to_string();
        let FetchedFiles { media: AcceptedMedia { images, files }, left_out } = fetched;
        // Together, so that none makes room for another one; else each by itself, and what is there already is stored once.
        if !has_room(self.media.add(&id, images).await)? {
            let mut place = 0;
            while let Some(image) = images.get(place) {
                if has_room(self.media.add(&id, slice::from_ref(image)).await)? {
                    place += 1;
                } else {
                    left_out.push(format!("{}: {NO_ROOM}", image.0.name));
                    images.remove(place);
                }
            }
        }
        if !has_room(self.media.add_files(&id, files).await)? {
            let mut place = 0;
            while let Some(file) = files.get(place) {
                if has_room(self.media.add_files(&id, slice::from_ref(file)).await)? {
                    place += 1;
                } else {
                    left_out.push(format!("{}: {NO_ROOM}", file.0.name));
                    files.remove(place);
                }
            }
        }
        if self.sessions.get(session).await?.is_some() {
            return Ok(true);
        }
        // It was deleted in this moment, and its media before these.
        self.media.forget(&id).await?;
        Ok(false)
    }
}

/// Whether there was room.
fn has_room(added: Result<(), Error>) -> Result<bool, Error> {
    match added {
        Ok(()) => Ok(true),
        Err(Error::Quota { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl StoredFiles {
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
    /// The files of a message, fetched once, and stored with its session as far as they are passed on. `None` if the message or the session
    /// was forgotten meanwhile; then nothing is stored.
    ///
    /// # Errors
    /// Those of the store. A file that cannot be had is none of them.
    pub(super) async fn files_of(
        &self,
        message: &PendingMessage,
        session: SessionId,
        files: &mut MessageFiles,
    ) -> Result<Option<StoredFiles>, Status> {
        if message.files.is_empty() {
            return Ok(Some(StoredFiles::default()));
        }
        if let Some(stored) = files.stored.as_ref().filter(|stored| stored.session == Some(session)) {
            return Ok(Some(stored.clone()));
        }
        let (mut fetched, place) = match files.fetched.take() {
            Some(fetched) => fetched,
            None => {
                let place = self.fetching.take(&message.channel).await;
                (self.fetch(message).await, place)
            }
        };
        let sessions = &*self.agent.sessions;
        let store = FileStore { media: &self.agent.media, sessions, rows: &self.store };
        match store.put(message, session, &mut fetched).await {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                files.fetched = Some((fetched, place));
                return Err(store_error_status(&error));
            }
        }
        let FetchedFiles { media: AcceptedMedia { images, files: others }, left_out } = fetched;
        let stored = StoredFiles {
            session: Some(session),
            images: images.into_iter().map(|(image, _)| image).collect(),
            attachments: others.into_iter().map(|(file, _)| file).collect(),
            left_out,
        };
        Ok(Some(files.stored.insert(stored).clone()))
    }

    async fn fetch(&self, message: &PendingMessage) -> FetchedFiles {
        let keys = self.agent.setup().settings.agent.media;
        let (mut fetched, until) = (FetchedFiles::default(), Instant::now() + FETCH_TIME);
        for (number, file) in message.files.iter().enumerate() {
            let name = Raw::from(file.name.as_str()).line_within(MAX_NAME_BYTES).into_string();
            let name = if name.trim().is_empty() { format!("file {}", number + 1) } else { name };
            let taken = match timeout_at(until, self.fetch_file(message, file, &keys)).await {
                Ok(Ok(data)) => fetched.add(Media { data, name: name.clone() }, &keys),
                Ok(Err(why)) => Err(why),
                Err(_) => Err(format!("it did not come within {} s", FETCH_TIME.as_secs())),
            };
            if let Err(why) = taken {
                let why = Raw::from(why).line_within(MAX_REASON_BYTES).into_string();
                let (channel, id) = (&message.channel, &message.id);
                tracing::warn!(channel, id, why, "a file of a message is not passed on");
                fetched.left_out.push(format!("{name}: {why}"));
            }
        }
        fetched
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
#[path = "files_tests.rs"]
mod tests;
