//! Where the bytes of files are, as a turn sees it.

use async_trait::async_trait;

use crate::media::Attachment;

/// A file was not read, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AttachmentError(pub String);

/// Has the files of a session.
#[async_trait]
pub trait AttachmentSource: Send + Sync {
    /// The files of a session, the oldest first; none if they cannot be read.
    async fn list(&self, session: &str) -> Vec<Attachment>;

    /// The bytes of a file; `None` if they are no longer stored.
    ///
    /// # Errors
    /// [`AttachmentError`]
    async fn load(&self, session: &str, file: &Attachment) -> Result<Option<Vec<u8>>, AttachmentError>;
}

/// Has none.
#[async_trait]
impl AttachmentSource for () {
    async fn list(&self, _: &str) -> Vec<Attachment> {
        Vec::new()
    }

    async fn load(&self, _: &str, _: &Attachment) -> Result<Option<Vec<u8>>, AttachmentError> {
        Ok(None)
    }
}
