//! Where the bytes of images are, as a turn sees it.

use async_trait::async_trait;
use talon_agent_settings::MediaKeys;
use talon_llm::model::{Image, ShownImages};

use crate::media::ImageWithBytes;

/// Images were not stored, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ImageStoreError(pub String);

/// Stores the bytes of a session's images.
#[async_trait]
pub trait ImageSource: Send + Sync {
    /// The operator's limits.
    fn limits(&self) -> MediaKeys;

    /// The bytes of those images that are still stored.
    async fn load(&self, session: &str, images: &[&Image]) -> ShownImages;

    /// Stores images.
    ///
    /// # Errors
    /// [`ImageStoreError`]; some may be stored.
    async fn add(&self, session: &str, images: &[ImageWithBytes]) -> Result<(), ImageStoreError>;
}

/// Stores nothing.
#[async_trait]
impl ImageSource for () {
    fn limits(&self) -> MediaKeys {
        MediaKeys::default()
    }

    async fn load(&self, _: &str, _: &[&Image]) -> ShownImages {
        ShownImages::default()
    }

    async fn add(&self, _: &str, _: &[ImageWithBytes]) -> Result<(), ImageStoreError> {
        Err(ImageStoreError("there is no store of images".to_owned()))
    }
}
