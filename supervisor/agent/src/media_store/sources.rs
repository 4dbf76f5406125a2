//! The store as a turn sees it: the bytes of its session's images and files.

use std::collections::BTreeMap;

use async_trait::async_trait;
use talon_agent_settings::MediaKeys;
use talon_error_chain::error_chain;
use talon_llm::model::{Image, ShownImages};
use talon_store::Error;

use super::{MediaStore, StoredBlob};
use crate::driver::{AttachmentError, AttachmentSource, ImageSource, ImageStoreError};
use crate::media::{Attachment, ImageWithBytes};

impl MediaStore {
    async fn load(&self, session: &str, images: &[&Image]) -> Result<ShownImages, Error> {
        let mut shown = ShownImages::default();
        let stored: BTreeMap<String, StoredBlob> =
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

    async fn list(&self, session: &str) -> Result<Vec<Attachment>, Error> {
        let mut files = Vec::new();
        for (_, blob) in self.stored(&format!("{session}/")).await? {
            let Some(key) = &blob.about else { continue };
            let about = self.key_values.get(&self.plugin, key).await?.unwrap_or_default();
            files.extend(serde_json::from_slice::<Attachment>(&about));
        }
        Ok(files)
    }

    async fn bytes_of(&self, session: &str, file: &Attachment) -> Result<Option<Vec<u8>>, Error> {
        let stored = self.stored(&format!("{session}/")).await?;
        // The latest: a crash may have cut off an earlier one.
        let Some((_, blob)) = stored.iter().rev().find(|(digest, _)| *digest == file.digest) else {
            return Ok(None);
        };
        let bytes = self.read(blob).await?;
        Ok((bytes.len() == file.bytes).then_some(bytes))
    }
}

#[async_trait]
impl AttachmentSource for MediaStore {
    async fn list(&self, session: &str) -> Vec<Attachment> {
        Self::list(self, session).await.unwrap_or_else(|error| {
            let error = error_chain(&error);
            tracing::error!(target: "agent", session, error, "files cannot be listed: the model is offered none");
            Vec::new()
        })
    }

    async fn load(&self, session: &str, file: &Attachment) -> Result<Option<Vec<u8>>, AttachmentError> {
        self.bytes_of(session, file).await.map_err(|error| AttachmentError(error_chain(&error)))
    }
}

#[async_trait]
impl ImageSource for MediaStore {
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
