//! The overlay's file while a change comes into force.

use std::sync::Arc;

use crate::blocking::blocking;
use crate::config::overlay::{OverlayFile, StorageError};

/// A text to write as the overlay, and the one to put back.
#[derive(Debug, Clone)]
pub(super) struct OverlayWrite {
    file: OverlayFile,
    text: Arc<str>,
    before: Arc<str>,
}

impl OverlayWrite {
    pub(super) fn new(file: OverlayFile, text: Arc<str>, before: Arc<str>) -> Self {
        Self { file, text, before }
    }

    pub(super) async fn commit(&self) -> Result<(), StorageError> {
        let Self { file, text, .. } = self.clone();
        blocking(move || file.write(&text)).await
    }

    pub(super) async fn undo(&self) {
        let Self { file, before, .. } = self.clone();
        if let Err(error) = blocking(move || file.write(&before)).await {
            tracing::error!("the overlay could not be put back: {error}");
        }
    }
}
