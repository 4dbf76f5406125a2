//! What a request brings to be stored.

use crate::media::{AttachmentWithBytes, ImageWithBytes};

/// Bytes to store.
pub(super) struct NewBlob<'b> {
    pub(super) digest: &'b str,
    pub(super) bytes: &'b [u8],
    /// Of a file: what is known of it, as JSON.
    pub(super) about: Option<Vec<u8>>,
}

impl<'b> NewBlob<'b> {
    pub(super) fn of_image((image, bytes): &'b ImageWithBytes) -> Self {
        Self { digest: &image.digest, bytes, about: None }
    }

    pub(super) fn of_file((file, bytes): &'b AttachmentWithBytes) -> Self {
        // It has only string keys, so serializing it cannot fail.
        let about = Some(serde_json::to_vec(file).unwrap_or_default());
        Self { digest: &file.digest, bytes, about }
    }
}
