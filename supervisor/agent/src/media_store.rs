//! The bytes of images and files, in the agent's own database, as pieces of a session's key-values.
//!
//! A key is `SESSION/TIME.DIGEST/PIECE`, so that those of a session stand together, the oldest first; a file has
//! one more, `ABOUT`, with its name and type. They go with their session, and with `talon forget`; `talon
//! backup` has them, since they are in the database, and `talon export` writes them below `media/`.

mod new_blob;
mod request_media;
mod sources;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use talon_agent_settings::MediaKeys;
use talon_store::limits::MAX_VALUE_BYTES;
use talon_store::{
    Error, Key, KeySize, KeyValues, MEDIA_NAMESPACE, Namespace, PageRequest, PluginId, Timestamp,
};
use tokio::sync::Mutex;

use self::new_blob::NewBlob;
use crate::media::{AttachmentWithBytes, ImageWithBytes};

/// What stands in the place of a piece's number for what is known of a file, as JSON.
const ABOUT: &str = "about";
/// The most files of one session: what a person sends in some hours. The oldest are deleted for new ones.
const MAX_SESSION_FILES: usize = 100;
/// The most pieces of all sessions: a million small ones. The bytes are limited by `agent.media.total_bytes`.
const MAX_PIECES: u64 = 1_000_000;
/// Keys read at once.
const PAGE: u32 = 1_000;
/// The digits of a time in milliseconds: enough until the year 2286.
const TIME_DIGITS: usize = 13;

/// Stores images and files.
pub struct MediaStore {
    key_values: Arc<dyn KeyValues>,
    plugin: PluginId,
    keys: RwLock<MediaKeys>,
    /// Locked while something is added, so that two turns do not both think that there is room.
    adding: Mutex<()>,
    /// What requests added whose turns have not begun, and no other request has, by the beginnings of its keys.
    undecided: parking_lot::Mutex<HashSet<String>>,
}

/// A stored image or file, by the beginning of its keys.
#[derive(Default)]
struct StoredBlob {
    prefix: String,
    bytes: u64,
    pieces: Vec<Key>,
    /// Of a file: what is known of it.
    about: Option<Key>,
}

/// How much images and files of a session are together.
#[derive(Debug, Clone, Copy, Default)]
struct SessionSize {
    bytes: u64,
    files: usize,
}

impl SessionSize {
    fn add(&mut self, bytes: u64, is_file: bool) {
        self.bytes += bytes;
        self.files += usize::from(is_file);
    }
}

impl MediaStore {
    /// Opens what is in a store.
    ///
    /// # Errors
    /// Never, since the namespace is valid; the type is that of the caller's other errors.
    pub fn new(key_values: Arc<dyn KeyValues>, keys: MediaKeys) -> Result<Self, Error> {
        let plugin = PluginId::new(MEDIA_NAMESPACE)?;
        let (adding, undecided) = (Mutex::default(), parking_lot::Mutex::default());
        Ok(Self { key_values, plugin, keys: RwLock::new(keys), adding, undecided })
    }

    /// Applies another configuration.
    pub fn configure(&self, keys: MediaKeys) {
        *self.keys.write() = keys;
    }

    /// Stores images of a session that it does not have yet. Where they are too many bytes, its oldest make room.
    ///
    /// # Errors
    /// When the database cannot be read or written; [`Error::Quota`] if all sessions together have too much. Then nothing of them stays.
    pub async fn add(&self, session: &str, images: &[ImageWithBytes]) -> Result<(), Error> {
        self.add_request(session, images, &[]).await?.keep().await
    }

    /// Stores files of a session, as [`MediaStore::add`] does.
    ///
    /// # Errors
    /// As for images.
    pub async fn add_files(&self, session: &str, files: &[AttachmentWithBytes]) -> Result<(), Error> {
        self.add_request(session, &[], files).await?.keep().await
    }

    /// They stay, whatever becomes of the request that added them.
    fn decide(&self, beginnings: &[String]) {
        let mut undecided = self.undecided.lock();
        for beginning in beginnings {
            undecided.remove(beginning);
        }
    }

    /// What of other images and files of a session, the oldest first, has to go beside those that stay. What is not decided about stays, too.
    fn surplus(&self, mut others: Vec<StoredBlob>, own: SessionSize, keys: MediaKeys) -> Vec<StoredBlob> {
        {
            let undecided = self.undecided.lock();
            others.retain(|blob| !undecided.contains(&blob.prefix));
        }
        let mut size = own;
        for blob in &others {
            size.add(blob.bytes, blob.about.is_some());
        }
        others.retain(|oldest| {
            let is_file = oldest.about.is_some();
            let too_many_files = is_file && size.files > MAX_SESSION_FILES;
            let goes = size.bytes > u64::from(keys.session_bytes) || too_many_files;
            if goes {
                size.bytes -= oldest.bytes;
                size.files -= usize::from(is_file);
            }
            goes
        });
        others
    }

    async fn write(&self, namespace: &Namespace, beginning: &str, blob: &NewBlob<'_>) -> Result<(), Error> {
        for (piece, part) in blob.bytes.chunks(MAX_VALUE_BYTES).enumerate() {
            let key = Key::new(format!("{beginning}/{piece:02}"))?;
            self.key_values.set(namespace, &key, part.to_vec()).await?;
        }
        // Last, so that a file that is listed is whole.
        if let Some(about) = &blob.about {
            let key = Key::new(format!("{beginning}/{ABOUT}"))?;
            self.key_values.set(namespace, &key, about.clone()).await?;
        }
        Ok(())
    }

    /// Deletes all images and files of a session.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn forget(&self, session: &str) -> Result<(), Error> {
        for (_, image) in self.stored(&format!("{session}/")).await? {
            self.delete(&image).await?;
        }
        Ok(())
    }

    /// Deletes images and files that are older than `agent.media.keep_days`; returns how many.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn expire(&self, now: Timestamp) -> Result<usize, Error> {
        let Some(keep) = self.keys.read().keep() else { return Ok(0) };
        let since = now.before(keep).as_millis();
        let mut expired = 0;
        for (_, image) in self.stored("").await? {
            if image.time().is_none_or(|time| time < since) {
                self.delete(&image).await?;
                expired += 1;
            }
        }
        Ok(expired)
    }

    /// What has keys that begin with this, by digest, the oldest of a session first.
    async fn stored(&self, prefix: &str) -> Result<Vec<(String, StoredBlob)>, Error> {
        let mut found: Vec<(String, StoredBlob)> = Vec::new();
        let mut page = PageRequest::first(PAGE);
        loop {
            let sizes = self.key_values.sizes(&self.plugin, prefix, &page).await?;
            for KeySize { key, bytes } in sizes.items {
                let Some((beginning, piece)) = key.as_str().rsplit_once('/') else { continue };
                let is_about = piece == ABOUT;
                let beginning = beginning.to_owned();
                if found.last().is_none_or(|(_, blob)| blob.prefix != beginning) {
                    let digest = beginning.rsplit('.').next().unwrap_or_default().to_owned();
                    found.push((digest, StoredBlob { prefix: beginning, ..StoredBlob::default() }));
                }
                let Some((_, blob)) = found.last_mut() else { continue };
                if is_about {
                    blob.about = Some(key);
                } else {
                    blob.bytes += bytes;
                    blob.pieces.push(key);
                }
            }
            let Some(next) = sizes.next else { return Ok(found) };
            page = PageRequest::after(next, PAGE);
        }
    }

    async fn delete(&self, blob: &StoredBlob) -> Result<(), Error> {
        for piece in blob.about.iter().chain(&blob.pieces) {
            self.key_values.delete(&self.plugin, piece).await?;
        }
        Ok(())
    }

    async fn read(&self, blob: &StoredBlob) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for piece in &blob.pieces {
            bytes.extend(self.key_values.get(&self.plugin, piece).await?.unwrap_or_default());
        }
        Ok(bytes)
    }
}

impl StoredBlob {
    /// What its pieces count for the limit of all sessions: values and keys.
    fn stored_bytes(&self) -> u64 {
        self.bytes + self.pieces.iter().map(|piece| piece.as_str().len() as u64).sum::<u64>()
    }

    /// When it was stored, in milliseconds since 1970.
    fn time(&self) -> Option<i64> {
        let (_, name) = self.prefix.rsplit_once('/')?;
        name.split('.').next()?.parse().ok()
    }
}

/// The pause between two searches for what is too old: what is kept 30 days is kept an hour more.
pub(crate) const EXPIRY_INTERVAL: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests;
