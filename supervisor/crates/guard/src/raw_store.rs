//! Stores answers as they came, for an operator who wants to know what a plugin really sent.
//!
//! Nothing in the stack reads from it, and no text in it is fit to be shown: a caller has to sanitize it or
//! return it as bytes. A model must not be able to reach it.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::digest::Digest;
use crate::fair_store::FairStore;

/// A message of a plugin as it came off the wire, valid or not.
#[derive(Clone, PartialEq, Eq)]
pub struct RawMessage {
    /// The call it came as the answer to.
    pub call_id: String,
    /// The plugin that sent it.
    pub plugin: String,
    /// The action that was called.
    pub action: String,
    /// When it came.
    pub received: SystemTime,
    /// The digest of the message.
    pub digest: Digest,
    /// The undecoded protobuf message of `ToolResultResponse`.
    pub message: Bytes,
}

/// Shows its length and nothing of its content.
impl fmt::Debug for RawMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMessage")
            .field("call_id", &self.call_id)
            .field("plugin", &self.plugin)
            .field("digest", &self.digest)
            .field("bytes", &self.message.len())
            .finish_non_exhaustive()
    }
}

/// The newest messages, as many as fit. Clones share the store.
///
/// When it is full, the plugin that takes up most of it loses its oldest message, so that one plugin cannot
/// evict the messages of another. Messages are stored without a copy, so a message may keep alive the buffer
/// it came in.
#[derive(Debug, Clone)]
pub struct RawStore {
    /// `None` if nothing is stored.
    store: Option<Arc<Mutex<FairStore<RawMessage>>>>,
}

impl RawStore {
    /// A store of at most this many bytes. Each message counts with its name and some bytes of overhead. 0
    /// stores nothing, at no cost.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        // The bytes bound the count too, because each message has an overhead.
        Self { store: (max_bytes > 0).then(|| Arc::new(Mutex::new(FairStore::new(max_bytes, usize::MAX)))) }
    }

    /// The answer to this call as it came, if it is still stored. The newest if there are several.
    #[must_use]
    pub fn get(&self, call_id: &str) -> Option<RawMessage> {
        let shelf = self.store.as_ref()?.lock();
        shelf.get(call_id).map(|(_, message)| message.clone())
    }

    /// All stored messages, newest first.
    #[must_use]
    pub fn list(&self) -> Vec<RawMessage> {
        let Some(shelf) = &self.store else { return Vec::new() };
        shelf.lock().newest_first().cloned().collect()
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.store.is_some()
    }

    pub(crate) fn store(&self, message: RawMessage) {
        let Some(shelf) = &self.store else { return };
        let mut shelf = shelf.lock();
        let (plugin, call_id) = (message.plugin.clone(), message.call_id.clone());
        shelf.insert(&plugin, &call_id, message.message.len() + message.action.len(), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(plugin: &str, call_id: &str, bytes: usize) -> RawMessage {
        let message = Bytes::from(vec![b'x'; bytes]);
        RawMessage {
            call_id: call_id.to_owned(),
            plugin: plugin.to_owned(),
            action: "run".to_owned(),
            received: SystemTime::UNIX_EPOCH,
            digest: Digest::of(&message),
            message,
        }
    }

    #[test]
    fn the_newest_of_a_plugin_win_and_other_plugins_lose_nothing() {
        let store = RawStore::new(10_000);
        store.store(message("quiet", "q", 1000));
        for call in 0..100 {
            store.store(message("loud", &call.to_string(), 1000));
        }
        assert!(store.get("q").is_some());
        assert!(store.get("99").is_some() && store.get("50").is_none());
        let listed: Vec<String> = store.list().into_iter().map(|kept| kept.call_id).collect();
        assert_eq!((listed[0].as_str(), listed[listed.len() - 1].as_str()), ("99", "q"), "{listed:?}");
    }

    #[test]
    fn of_two_answers_to_one_id_the_newest_is_there() {
        let store = RawStore::new(10_000);
        store.store(message("a", "1", 10));
        store.store(message("b", "1", 20));
        assert_eq!(store.get("1").map(|message| message.message.len()), Some(20));
    }

    #[test]
    fn zero_keeps_nothing() {
        let store = RawStore::new(0);
        store.store(message("a", "1", 10));
        assert_eq!(store.get("1"), None);
    }

    #[test]
    fn debug_shows_nothing_of_the_text() {
        assert!(!format!("{:?}", message("a", "1", 10)).contains("xxx"));
    }
}
