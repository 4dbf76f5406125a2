//! The images and files of a request whose turn has not begun. If it is refused they go, unless another request has them as well.

use talon_store::{Error, Namespace, Quota, Timestamp};

use super::new_blob::NewBlob;
use super::{MAX_PIECES, MediaStore, SessionSize, StoredBlob, TIME_DIGITS};
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

    /// Stores what is new of these, and tells `media` of each before it is written. Nothing is deleted for it yet: what has to go once the
    /// request is kept is left out of the limit of all sessions.
    async fn add_blobs(
        &self,
        session: &str,
        blobs: &[NewBlob<'_>],
        media: &mut RequestMedia<'_>,
    ) -> Result<(), Error> {
        if blobs.is_empty() {
            return Ok(());
        }
        let keys = *self.keys.read();
        let _alone = self.adding.lock().await;
        let stored = self.stored(&format!("{session}/")).await?;
        // What a crash cut off is stored anew.
        let same = |stored: &(String, StoredBlob), blob: &NewBlob<'_>| {
            let StoredBlob { bytes, about, .. } = &stored.1;
            stored.0 == blob.digest
                && *bytes == blob.bytes.len() as u64
                && about.is_some() == blob.about.is_some()
        };
        let is_new = |blob: &&NewBlob<'_>| !stored.iter().any(|stored| same(stored, blob));
        let new: Vec<&NewBlob<'_>> = blobs.iter().filter(is_new).collect();
        let mut own = SessionSize::default();
        for blob in &new {
            own.add(blob.bytes.len() as u64, blob.about.is_some());
        }
        let mut others = Vec::new();
        for found in stored {
            if blobs.iter().any(|blob| same(&found, blob)) {
                own.add(found.1.bytes, found.1.about.is_some());
                media.add_again(found.1.prefix);
            } else {
                others.push(found.1);
            }
        }
        let surplus = self.surplus(others, own, keys);
        let (mut bytes, mut pieces) = (keys.total_bytes, MAX_PIECES);
        for blob in &surplus {
            bytes = bytes.saturating_add(blob.stored_bytes());
            pieces = pieces.saturating_add(blob.pieces.len() as u64);
        }
        let namespace = Namespace { plugin: self.plugin.clone(), quota: Quota { bytes, keys: pieces } };
        let now = Timestamp::now().as_millis();
        for blob in new {
            let beginning = format!("{session}/{now:0TIME_DIGITS$}.{}", blob.digest);
            media.add(beginning.clone());
            self.write(&namespace, &beginning, blob).await?;
        }
        Ok(())
    }
}

impl RequestMedia<'_> {
    /// Notes what is going to be written.
    fn add(&mut self, beginning: String) {
        self.store.undecided.lock().insert(beginning.clone());
        self.added.push(beginning);
    }

    /// Notes what the session has already. It stays, whatever becomes of the request that added it.
    fn add_again(&mut self, beginning: String) {
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
