//! The vectors that were made, in memory and in the agent's database.
//!
//! They hold nothing but what tools' declarations say, so nothing of them is a sender's. A backup has them; an
//! export does not, since they can be made again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use talon_error_chain::error_chain;
use talon_store::{Error, Key, KeyValues, Namespace, PageRequest, PluginId, Quota, Vector};
use tokio::sync::OnceCell;

use super::embedder::Embedder;
use crate::driver::SimilarityError;

/// The key-value namespace, in the agent's own database.
const NAMESPACE: &str = "agent-tool-vectors";
/// The most vectors: of several thousand tools, of which models choose badly anyway. With 3,072 dimensions they
/// take 12 MiB of memory, and as much of the database. Beyond that, those of tools that are not offered are
/// deleted; with more tools, a search is by words alone.
pub(super) const MAX_VECTORS: usize = 4096;

/// The bytes of a text's key.
const DIGEST_BYTES: usize = 16;

type TextDigest = [u8; DIGEST_BYTES];

pub(super) struct VectorCache {
    key_values: Arc<dyn KeyValues>,
    /// What all keys of this model begin with.
    prefix: String,
    loaded: OnceCell<()>,
    vectors: Mutex<HashMap<TextDigest, Vector>>,
}

impl VectorCache {
    pub(super) fn new(key_values: Arc<dyn KeyValues>, embedder: &Embedder) -> Self {
        let prefix = format!("{}.", embedder.space());
        Self { key_values, prefix, loaded: OnceCell::new(), vectors: Mutex::default() }
    }

    /// The vectors of texts; or those texts that have none.
    ///
    /// # Errors
    /// If they are more than [`MAX_VECTORS`].
    pub(super) async fn get(
        &self,
        texts: &[String],
    ) -> Result<Result<Vec<Vector>, Vec<String>>, SimilarityError> {
        if texts.len() > MAX_VECTORS {
            return Err(SimilarityError(format!("vectors are made for at most {MAX_VECTORS} tools")));
        }
        self.loaded.get_or_init(|| self.load()).await;
        let vectors = self.vectors.lock();
        let found: Vec<Option<&Vector>> = texts.iter().map(|text| vectors.get(&digest(text))).collect();
        if let Some(all) = found.iter().copied().collect::<Option<Vec<_>>>() {
            return Ok(Ok(all.into_iter().cloned().collect()));
        }
        let missing = texts.iter().zip(&found).filter(|(_, vector)| vector.is_none());
        let missing: BTreeSet<&String> = missing.map(|(text, _)| text).collect();
        Ok(Err(missing.into_iter().cloned().collect()))
    }

    /// Adds vectors. Without the database they last as long as the process.
    pub(super) async fn put(&self, texts: &[String], vectors: Vec<Vector>) {
        for (text, vector) in texts.iter().zip(vectors) {
            let digest = digest(text);
            if let Err(error) = self.store(digest, &vector).await {
                tracing::warn!(target: "agent", error = error_chain(&error), "a tool's vector is not stored");
            }
            self.vectors.lock().insert(digest, vector);
        }
    }

    /// Deletes vectors of texts that are not wanted, if more would be too many.
    pub(super) async fn make_room(&self, more: usize, wanted: &[String]) {
        let wanted: BTreeSet<TextDigest> = wanted.iter().map(|text| digest(text)).collect();
        let old: Vec<TextDigest> = {
            let mut vectors = self.vectors.lock();
            if vectors.len() + more <= MAX_VECTORS {
                return;
            }
            let old = vectors.keys().filter(|key| !wanted.contains(*key)).copied().collect();
            vectors.retain(|key, _| wanted.contains(key));
            old
        };
        for digest in old {
            self.delete(&self.key(digest)).await;
        }
    }

    /// Reads what is stored, and deletes vectors of other models.
    async fn load(&self) {
        let mut page = PageRequest::first(0);
        loop {
            let read = match plugin() {
                Ok(plugin) => self.key_values.entries(&plugin, "", &page).await,
                Err(error) => Err(error),
            };
            let read = match read {
                Ok(read) => read,
                Err(error) => {
                    let error = error_chain(&error);
                    return tracing::warn!(target: "agent", error, "the tools' vectors cannot be read, and are made again");
                }
            };
            for entry in read.items {
                let key = entry.key.as_str();
                let stored = key.strip_prefix(&self.prefix).and_then(|digest| hex::decode(digest).ok());
                match stored.and_then(|digest| TextDigest::try_from(digest).ok()) {
                    Some(digest) if self.vectors.lock().len() < MAX_VECTORS => {
                        self.vectors.lock().insert(digest, Vector::from_bytes(&entry.value));
                    }
                    _ => self.delete(key).await,
                }
            }
            match read.next {
                Some(token) => page = PageRequest::after(token, 0),
                None => return,
            }
        }
    }

    async fn store(&self, digest: TextDigest, vector: &Vector) -> Result<(), Error> {
        let quota = Quota { bytes: u64::MAX, keys: 2 * MAX_VECTORS as u64 };
        let namespace = Namespace { plugin: plugin()?, quota };
        self.key_values.set(&namespace, &Key::new(self.key(digest))?, vector.to_bytes()).await
    }

    async fn delete(&self, key: &str) {
        let deleted = async { self.key_values.delete(&plugin()?, &Key::new(key)?).await };
        if let Err(error) = deleted.await {
            tracing::warn!(target: "agent", error = error_chain(&error), "an old vector is not deleted");
        }
    }

    fn key(&self, digest: TextDigest) -> String {
        format!("{}{}", self.prefix, hex::encode(digest))
    }
}

fn plugin() -> Result<PluginId, Error> {
    Ok(PluginId::new(NAMESPACE)?)
}

/// The first half of the SHA-256: no two of a few thousand texts have the same.
fn digest(text: &str) -> TextDigest {
    let whole = Sha256::digest(text.as_bytes());
    std::array::from_fn(|place| whole[place])
}
