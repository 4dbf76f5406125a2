//! The bytes of images, in the agent's own database, as pieces of a session's key-values.
//!
//! A key is `SESSION/TIME.DIGEST/PIECE`, so that those of a session stand together, the oldest first. They go with
//! their session, and with `talon forget`; `talon backup` has them, since they are in the database. `talon export`
//! does not: its sessions have what a transcript has of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;
use talon_agent_settings::MediaKeys;
use talon_error_chain::error_chain;
use talon_llm::model::{Image, ShownImages};
use talon_store::limits::MAX_VALUE_BYTES;
use talon_store::{Error, Key, KeySize, KeyValues, Namespace, PageRequest, PluginId, Quota, Timestamp};
use tokio::sync::Mutex;

use crate::driver::{ImageSource, ImageStoreError};
use crate::media::ImageWithBytes;

/// The key-value namespace, in the agent's own database.
const NAMESPACE: &str = "agent-images";
/// The most pieces of all images: a million small ones. The bytes are limited by `agent.media.total_bytes`.
const MAX_PIECES: u64 = 1_000_000;
/// Keys read at once.
const PAGE: u32 = 1_000;
/// The digits of a time in milliseconds: enough until the year 2286.
const TIME_DIGITS: usize = 13;

/// Stores images.
pub struct ImageStore {
    key_values: Arc<dyn KeyValues>,
    plugin: PluginId,
    keys: RwLock<MediaKeys>,
    /// Locked while images are added, so that two turns do not both think that there is room.
    adding: Mutex<()>,
}

/// A stored image, by the beginning of its keys.
struct StoredImage {
    prefix: String,
    bytes: u64,
    pieces: Vec<Key>,
}

impl ImageStore {
    /// Opens the images in a store.
    ///
    /// # Errors
    /// Never, since the namespace is valid; the type is that of the caller's other errors.
    pub fn new(key_values: Arc<dyn KeyValues>, keys: MediaKeys) -> Result<Self, Error> {
        let plugin = PluginId::new(NAMESPACE)?;
        Ok(Self { key_values, plugin, keys: RwLock::new(keys), adding: Mutex::default() })
    }

    /// Applies another configuration.
    pub fn configure(&self, keys: MediaKeys) {
        *self.keys.write() = keys;
    }

    /// Stores images of a session that it does not have yet. Where they are too many bytes, its oldest make room.
    ///
    /// # Errors
    /// When the database cannot be read or written; [`Error::Quota`] if all sessions together have too much.
    pub async fn add(&self, session: &str, images: &[ImageWithBytes]) -> Result<(), Error> {
        if images.is_empty() {
            return Ok(());
        }
        let keys = *self.keys.read();
        let _alone = self.adding.lock().await;
        let mut stored = self.stored(&format!("{session}/")).await?;
        let is_new = |image: &Image| stored.iter().all(|(digest, _)| *digest != image.digest);
        let new: Vec<&ImageWithBytes> = images.iter().filter(|(image, _)| is_new(image)).collect();
        let wanted = |digest: &str| images.iter().any(|(image, _)| image.digest == digest);
        let more: u64 = new.iter().map(|(image, _)| image.bytes as u64).sum();
        let mut sum: u64 = stored.iter().map(|(_, image)| image.bytes).sum();
        // The oldest first; those that are sent again stay.
        stored.retain(|(digest, _)| !wanted(digest));
        for (_, oldest) in &stored {
            if sum + more <= u64::from(keys.session_bytes) {
                break;
            }
            self.delete(oldest).await?;
            sum -= oldest.bytes;
        }
        let quota = Quota { bytes: keys.total_bytes, keys: MAX_PIECES };
        let namespace = Namespace { plugin: self.plugin.clone(), quota };
        let now = Timestamp::now().as_millis();
        for (image, bytes) in new {
            for (piece, part) in bytes.chunks(MAX_VALUE_BYTES).enumerate() {
                let key = format!("{session}/{now:0TIME_DIGITS$}.{}/{piece:02}", image.digest);
                self.key_values.set(&namespace, &Key::new(key)?, part.to_vec()).await?;
            }
        }
        Ok(())
    }

    /// Deletes all images of a session.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn forget(&self, session: &str) -> Result<(), Error> {
        for (_, image) in self.stored(&format!("{session}/")).await? {
            self.delete(&image).await?;
        }
        Ok(())
    }

    /// Deletes images that are older than `agent.media.keep_days`; returns how many.
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

    /// The images whose keys begin with this, by digest, the oldest of a session first.
    async fn stored(&self, prefix: &str) -> Result<Vec<(String, StoredImage)>, Error> {
        let mut found: Vec<(String, StoredImage)> = Vec::new();
        let mut page = PageRequest::first(PAGE);
        loop {
            let sizes = self.key_values.sizes(&self.plugin, prefix, &page).await?;
            for KeySize { key, bytes } in sizes.items {
                let Some((beginning, _)) = key.as_str().rsplit_once('/') else { continue };
                let beginning = beginning.to_owned();
                match found.last_mut().filter(|(_, image)| image.prefix == beginning) {
                    Some((_, image)) => {
                        image.bytes += bytes;
                        image.pieces.push(key);
                    }
                    None => {
                        let digest = beginning.rsplit('.').next().unwrap_or_default().to_owned();
                        found.push((digest, StoredImage { prefix: beginning, bytes, pieces: vec![key] }));
                    }
                }
            }
            let Some(next) = sizes.next else { return Ok(found) };
            page = PageRequest::after(next, PAGE);
        }
    }

    async fn delete(&self, image: &StoredImage) -> Result<(), Error> {
        for piece in &image.pieces {
            self.key_values.delete(&self.plugin, piece).await?;
        }
        Ok(())
    }

    async fn read(&self, image: &StoredImage) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for piece in &image.pieces {
            bytes.extend(self.key_values.get(&self.plugin, piece).await?.unwrap_or_default());
        }
        Ok(bytes)
    }

    async fn load(&self, session: &str, images: &[&Image]) -> Result<ShownImages, Error> {
        let mut shown = ShownImages::default();
        let stored: BTreeMap<String, StoredImage> =
            self.stored(&format!("{session}/")).await?.into_iter().collect();
        for image in images {
            let Some(found) = stored.get(&image.digest) else { continue };
            let bytes = self.read(found).await?;
            // A piece that was deleted meanwhile leaves no image.
            if bytes.len() == image.bytes {
                shown.add(image.digest.clone(), bytes.into());
            }
        }
        Ok(shown)
    }
}

impl StoredImage {
    /// When it was stored, in milliseconds since 1970.
    fn time(&self) -> Option<i64> {
        let (_, name) = self.prefix.rsplit_once('/')?;
        name.split('.').next()?.parse().ok()
    }
}

#[async_trait]
impl ImageSource for ImageStore {
    fn limits(&self) -> MediaKeys {
        *self.keys.read()
    }

    async fn load(&self, session: &str, images: &[&Image]) -> ShownImages {
        if images.is_empty() {
            return ShownImages::default();
        }
        Self::load(self, session, images).await.unwrap_or_else(|error| {
            let error = error_chain(&error);
            tracing::error!(target: "agent", session, error, "images cannot be read: the model is asked without them");
            ShownImages::default()
        })
    }

    async fn add(&self, session: &str, images: &[ImageWithBytes]) -> Result<(), ImageStoreError> {
        Self::add(self, session, images).await.map_err(|error| ImageStoreError(error_chain(&error)))
    }
}

/// The pause between two searches for images that are too old: what is kept 30 days is kept an hour more.
pub(crate) const EXPIRY_INTERVAL: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests;
