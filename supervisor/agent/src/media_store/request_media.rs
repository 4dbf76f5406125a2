//! The images and files of a request whose turn has not begun. If it is refused they go, unless another request has them as well.

use talon_store::Error;

use super::new_blob::NewBlob;
use super::{MediaStore, SessionSize};
use crate::media::{AttachmentWithBytes, ImageWithBytes};

/// What a request added to its session. Dropped, it stays there, and makes no room until more is kept.
#[must_use]
pub(crate) struct RequestMedia<'s> {
    store: &'s MediaStore,
    session: String,
    /// The beginnings of the keys of what is new.
    added: Vec<String>,
    /// Of what the session had already.
    again: Vec<String>,
}

impl MediaStore {
    /// Stores the images and files of a request that its session does not have yet. Where it fails nothing of them stays.
    ///
    /// # Errors
    /// As for [`MediaStore::add`].
    pub(crate) async fn add_request(
        &self,
        session: &str,
        images: &[ImageWithBytes],
        files: &[AttachmentWithBytes],
    ) -> Result<RequestMedia<'_>, Error> {
        let blobs: Vec<NewBlob<'_>> =
            images.iter().map(NewBlob::of_image).chain(files.iter().map(NewBlob::of_file)).collect();
        // Before anything is stored, so that one that is cancelled meanwhile leaves nothing undecided.
        let mut media =
            RequestMedia { store: self, session: session.to_owned(), added: Vec::new(), again: Vec::new() };
        let added = self.add_blobs(session, &blobs, &mut media).await;
        let Err(error) = added else { return Ok(media) };
        if let Err(left) = media.take_back().await {
            let left = talon_error_chain::error_chain(&left);
            tracing::warn!(session, error = left, "images or files that cannot be stored stay in part");
        }
        Err(error)
    }
}

impl RequestMedia<'_> {
    /// Notes what is going to be written.
    pub(super) fn add(&mut self, beginning: String) {
        self.store.undecided.lock().insert(beginning.clone());
        self.added.push(beginning);
    }

    /// Notes what the session has already. It stays, whatever becomes of the request that added it.
    pub(super) fn add_again(&mut self, beginning: String) {
        self.store.undecided.lock().remove(&beginning);
        self.again.push(beginning);
    }

    /// Keeps all of it: the request's turn has begun. Where the session has too much, its oldest go.
    ///
    /// # Errors
    /// When the database cannot be read or written. Then it is kept all the same, and makes room when more is.
    pub(crate) async fn keep(self) -> Result<(), Error> {
        let store = self.store;
        if self.added.is_empty() {
            return Ok(());
        }
        let keys = *store.keys.read();
        let _alone = store.adding.lock().await;
        store.decide(&self.added);
        let (mut own, mut others) = (SessionSize::default(), Vec::new());
        for (_, blob) in store.stored(&format!("{}/", self.session)).await? {
            if self.added.contains(&blob.prefix) || self.again.contains(&blob.prefix) {
                own.add(blob.bytes, blob.about.is_some());
            } else {
                others.push(blob);
            }
        }
        for oldest in store.surplus(others, own, keys) {
            store.delete(&oldest).await?;
        }
        Ok(())
    }

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
        self.store.decide(&self.added);
    }
}
