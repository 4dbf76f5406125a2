//! The key-values that hold what channels have not finished, in the agent's own database.

use std::ops::RangeBounds;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use talon_store::{CHANNELS_NAMESPACE, Error, Key, KeyValues, Namespace, PageRequest, PluginId};

use super::pending::PendingMessage;

/// Records read at once.
const PAGE: u32 = 100;
/// Messages that are not answered yet.
const MESSAGE: &str = "message/";
/// The number of the last event that was read, by its source.
const CURSOR: &str = "cursor/";
/// Messages that answer a question in the place of a turn, by channel and event.
const ANSWERED: &str = "answered/";

/// Which question a message answers in the place of a turn. It is stored before the answer is given: what became of it, the question says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AnsweredQuestion {
    /// Whose events are numbered so.
    pub(super) source: String,
    /// The number of the message's event. Once it counts as read, the row is needed no more.
    pub(super) number: u64,
    /// The question's id.
    pub(super) question: String,
}

/// Reads and writes.
#[derive(Clone)]
pub(super) struct ChannelStore {
    kv: Arc<dyn KeyValues>,
    namespace: Namespace,
}

impl ChannelStore {
    pub(super) fn new(kv: Arc<dyn KeyValues>) -> Self {
        let plugin = PluginId::new(CHANNELS_NAMESPACE).expect("the namespace is a well-formed id");
        Self { kv, namespace: Namespace::of(plugin) }
    }

    /// All messages, in the order of their arrival. One that cannot be read is of another version, and stays where it is.
    pub(super) async fn messages(&self) -> Result<Vec<PendingMessage>, Error> {
        let mut messages = Vec::new();
        let mut page = PageRequest::first(PAGE);
        loop {
            let read = self.kv.entries(&self.namespace.plugin, MESSAGE, &page).await?;
            for entry in read.items {
                match serde_json::from_slice(&entry.value) {
                    Ok(message) => messages.push(message),
                    Err(_) => {
                        tracing::warn!(
                            key = entry.key.as_str(),
                            "a message of a channel cannot be read, and is left"
                        );
                    }
                }
            }
            let Some(next) = read.next else { return Ok(messages) };
            page = PageRequest::after(next, PAGE);
        }
    }

    pub(super) async fn put(&self, message: &PendingMessage) -> Result<(), Error> {
        let value = serde_json::to_vec(message).expect("texts, numbers and lists of them are always JSON");
        self.kv.set(&self.namespace, &Key::new(format!("{MESSAGE}{}", message.id))?, value).await
    }

    /// Replaces a message's row, unless it was forgotten meanwhile.
    pub(super) async fn replace(&self, message: &PendingMessage) -> Result<(), Error> {
        let value = serde_json::to_vec(message).expect("texts, numbers and lists of them are always JSON");
        let key = Key::new(format!("{MESSAGE}{}", message.id))?;
        let Some(before) = self.kv.get(&self.namespace.plugin, &key).await? else { return Ok(()) };
        // Only its own task writes a row, so who was faster has removed it.
        self.kv.compare_and_set(&self.namespace, &key, Some(before), Some(value)).await.map(drop)
    }

    /// Whether it was not forgotten meanwhile.
    pub(super) async fn has(&self, message: &PendingMessage) -> Result<bool, Error> {
        let key = Key::new(format!("{MESSAGE}{}", message.id))?;
        Ok(self.kv.get(&self.namespace.plugin, &key).await?.is_some())
    }

    pub(super) async fn remove(&self, id: &str) -> Result<(), Error> {
        self.kv.delete(&self.namespace.plugin, &Key::new(format!("{MESSAGE}{id}"))?).await.map(drop)
    }

    /// Notes which question a message is going to answer.
    pub(super) async fn put_answered(
        &self,
        channel: &str,
        event: &str,
        answered: &AnsweredQuestion,
    ) -> Result<(), Error> {
        let value = serde_json::to_vec(answered).expect("texts and numbers are always JSON");
        self.kv.set(&self.namespace, &answered_key(channel, event)?, value).await
    }

    /// Which question a message was going to answer.
    pub(super) async fn answered(
        &self,
        channel: &str,
        event: &str,
    ) -> Result<Option<AnsweredQuestion>, Error> {
        let value = self.kv.get(&self.namespace.plugin, &answered_key(channel, event)?).await?;
        Ok(value.map(|value| serde_json::from_slice(&value).unwrap_or_default()))
    }

    /// Forgets what messages answered whose events have these numbers.
    pub(super) async fn forget_all_answered(
        &self,
        source: &str,
        numbers: impl RangeBounds<u64>,
    ) -> Result<(), Error> {
        let mut page = PageRequest::first(PAGE);
        loop {
            let read = self.kv.entries(&self.namespace.plugin, ANSWERED, &page).await?;
            for entry in read.items {
                let answered: AnsweredQuestion = serde_json::from_slice(&entry.value).unwrap_or_default();
                if answered.source == source && numbers.contains(&answered.number) {
                    self.kv.delete(&self.namespace.plugin, &entry.key).await?;
                }
            }
            let Some(next) = read.next else { return Ok(()) };
            page = PageRequest::after(next, PAGE);
        }
    }

    /// Forgets what a message answered: nothing, or its event counts as read.
    pub(super) async fn forget_answered(&self, channel: &str, event: &str) -> Result<(), Error> {
        self.kv.delete(&self.namespace.plugin, &answered_key(channel, event)?).await.map(drop)
    }

    pub(super) async fn cursor(&self, source: &str) -> Result<Option<u64>, Error> {
        let value = self.kv.get(&self.namespace.plugin, &Key::new(format!("{CURSOR}{source}"))?).await?;
        Ok(value.and_then(|value| std::str::from_utf8(&value).ok()?.parse().ok()))
    }

    pub(super) async fn set_cursor(&self, source: &str, number: u64) -> Result<(), Error> {
        self.kv
            .set(&self.namespace, &Key::new(format!("{CURSOR}{source}"))?, number.to_string().into_bytes())
            .await
    }
}

fn answered_key(channel: &str, event: &str) -> Result<Key, Error> {
    Ok(Key::new(format!("{ANSWERED}{channel}/{event}"))?)
}

/// Removes what a sender wrote and is not answered yet. What a turn has begun ends with its session.
///
/// # Errors
/// Those of the store.
pub(crate) async fn forget_sender(kv: Arc<dyn KeyValues>, sender: &str) -> Result<(), Error> {
    let store = ChannelStore::new(kv);
    for message in store.messages().await? {
        if message.owner == sender || message.member.as_deref() == Some(sender) {
            store.remove(&message.id).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use talon_store::{Engine, StoreOptions};

    use super::super::inbound::{InboundMessage, MessageSource};
    use super::super::routing::Route;
    use super::*;

    #[tokio::test]
    async fn the_row_of_a_message_that_was_forgotten_does_not_come_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("private").join("agent.db");
        let opened = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let store = ChannelStore::new(opened.key_values());
        let speaker = MessageSource {
            conversation: "7".to_owned(),
            sender_id: "7".to_owned(),
            sender_name: "Ada".to_owned(),
            group_id: None,
        };
        let said = InboundMessage {
            id: "u/7".to_owned(),
            speaker,
            text: "hello".to_owned(),
            files: Vec::new(),
            mentioned: false,
        };
        let route = Route { owner: "ada".to_owned(), member: None };
        let mut message = PendingMessage::new("1".to_owned(), "telegram", said, route);
        store.put(&message).await.expect("stored");
        message.asked = true;
        store.replace(&message).await.expect("stored");
        assert_eq!(store.messages().await.expect("read"), [message.clone()]);
        forget_sender(opened.key_values(), "ada").await.expect("forgotten");
        store.replace(&message).await.expect("nothing to store");
        assert!(!store.has(&message).await.expect("read"));
    }

    #[tokio::test]
    async fn what_messages_answered_is_kept_until_their_events_count_as_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("private").join("agent.db");
        let opened = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let store = ChannelStore::new(opened.key_values());
        let answered = |source: &str, number| AnsweredQuestion {
            source: source.to_owned(),
            number,
            question: format!("q{number}"),
        };
        for (event, source, number) in [("u/7", "host", 7), ("u/8", "host", 8), ("u/9", "host", 9)] {
            store.put_answered("telegram", event, &answered(source, number)).await.expect("stored");
        }
        // Another supervisor's events have numbers of their own.
        store.put_answered("telegram", "u/1", &answered("host b", 1)).await.expect("stored");
        let left = async || {
            let mut left = Vec::new();
            for event in ["u/1", "u/7", "u/8", "u/9"] {
                left.extend(store.answered("telegram", event).await.expect("read").map(|row| row.number));
            }
            left
        };
        assert_eq!(left().await, [1, 7, 8, 9]);
        assert_eq!(store.answered("telegram", "u/8").await.expect("read"), Some(answered("host", 8)));
        assert_eq!(store.answered("sms", "u/8").await.expect("read"), None);
        store.forget_all_answered("host", ..=7_u64).await.expect("forgotten");
        assert_eq!(left().await, [1, 8, 9]);
        store.forget_answered("telegram", "u/9").await.expect("forgotten");
        store.forget_all_answered("host", 8_u64..).await.expect("forgotten");
        assert_eq!(left().await, [1]);
    }
}
