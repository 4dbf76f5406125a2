//! The images and files of a request whose turn has not begun. If it is refused they go, unless another request has them as well.

use talon_store::Error;

use super::MediaStore;
use crate::media::{AttachmentWithBytes, ImageWithBytes};

/// What a request added to its session. Dropped, it stays there.
#[must_use]
pub(crate) struct RequestMedia<'s> {
    store: &'s MediaStore,
    /// The beginnings of their keys.
    added: Vec<String>,
}

impl MediaStore {
    /// Stores the images and files of a request, as [`MediaStore::add`] does. Where it fails nothing of them stays.
    ///
    /// # Errors
    /// As for images.
    pub(crate) async fn add_request(
        &self,
        session: &str,
        images: &[ImageWithBytes],
        files: &[AttachmentWithBytes],
    ) -> Result<RequestMedia<'_>, Error> {
        let mut media = RequestMedia { store: self, added: Vec::new() };
        media.added = self.add_blobs(session, Self::image_blobs(images)).await?;
        match self.add_blobs(session, Self::file_blobs(files)).await {
            Ok(added) => {
                media.added.extend(added);
                Ok(media)
            }
            Err(error) => {
                media.take_back().await?;
                Err(error)
            }
        }
    }
}

impl RequestMedia<'_> {
    /// Deletes what no other request has: one that came meanwhile may be about the same image.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub(crate) async fn take_back(self) -> Result<(), Error> {
        let _alone = self.store.adding.lock().await;
        for beginning in &self.added {
            if self.store.undecided.lock().remove(beginning) {
                for (_, blob) in self.store.stored(&format!("{beginning}/")).await? {
                    self.store.delete(&blob).await?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for RequestMedia<'_> {
    fn drop(&mut self) {
        let mut undecided = self.store.undecided.lock();
        for beginning in &self.added {
            undecided.remove(beginning);
        }
    }
}
