//! A session as a value: new, stored and exported.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::message::Message;
use super::overrides::Overrides;
use crate::error::Error;
use crate::id::SessionId;
use crate::invalid::InvalidError;
use crate::limits::{MAX_METADATA_ENTRIES, MAX_METADATA_VALUE_BYTES, count, name, size};
use crate::time::Timestamp;

/// A session to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSession {
    /// The sender.
    pub sender: String,
    /// The channel.
    pub channel: String,
    /// The model that answers, if it is chosen already.
    pub active_model: Option<String>,
    /// Further metadata.
    pub metadata: BTreeMap<String, String>,
}

/// The attributes of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// The sender.
    pub sender: String,
    /// The channel.
    pub channel: String,
    /// Whether it is active.
    pub state: SessionState,
    /// The model that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_model: Option<String>,
    /// This session's overrides of the configuration.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub overrides: Overrides,
    /// Further metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last written to.
    pub updated_at: Timestamp,
    /// The sequence number of the next message.
    pub next_sequence: u64,
}

/// Whether a session is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// It was written to recently, or resumed.
    Active,
    /// It was not written to for a while.
    Idle,
}

impl SessionState {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Idle => "idle",
        }
    }

    pub(crate) fn parse(word: &str) -> Result<Self, Error> {
        match word {
            "active" => Ok(Self::Active),
            "idle" => Ok(Self::Idle),
            other => Err(Error::unreadable("session's state", format!("`{other}`"))),
        }
    }
}

/// Where a writer expects the log to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Anywhere.
    Any,
    /// The next message has this sequence number; otherwise nothing is written.
    Next(u64),
}

impl Expected {
    pub(crate) fn check(self, session: SessionId, next: u64) -> Result<(), Error> {
        match self {
            Self::Next(expected) if expected != next => Err(Error::OutOfSequence { session, expected, next }),
            _ => Ok(()),
        }
    }
}

/// A session with its messages, as a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedSession {
    /// Its attributes.
    #[serde(flatten)]
    pub session: Session,
    /// All messages in the order of writing, including the replaced ones.
    pub messages: Vec<Message>,
}

impl Session {
    /// Its size.
    pub(crate) fn weight(&self) -> usize {
        let metadata: usize = self.metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.sender.len() + self.channel.len() + metadata
    }
}

impl ExportedSession {
    /// Checks imported data like new data.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Session { sender, channel, active_model, metadata, overrides, next_sequence, .. } = &self.session;
        NewSession {
            sender: sender.clone(),
            channel: channel.clone(),
            active_model: active_model.clone(),
            metadata: metadata.clone(),
        }
        .check()?;
        overrides.check()?;
        let (mut last, mut keys) = (0, BTreeSet::new());
        for message in &self.messages {
            message.check()?;
            if message.key.as_deref().is_some_and(|key| !keys.insert(key)) {
                return Err(Error::invalid("the messages", "must each have a key of their own, or none"));
            }
            if message.sequence <= last || message.sequence >= *next_sequence {
                return Err(Error::invalid("the messages", "must have ascending numbers below the next one"));
            }
            last = message.sequence;
        }
        // The engines store numbers as signed.
        if i64::try_from(*next_sequence).is_err() {
            return Err(Error::invalid("the next sequence number", "is too large"));
        }
        Ok(())
    }
}

impl NewSession {
    /// The session in its initial state.
    pub(crate) fn checked(self) -> Result<Session, Error> {
        self.check()?;
        let now = Timestamp::now();
        let Self { sender, channel, active_model, metadata } = self;
        Ok(Session {
            id: SessionId::generate(),
            sender,
            channel,
            state: SessionState::Active,
            active_model,
            overrides: Overrides::default(),
            metadata,
            created_at: now,
            updated_at: now,
            next_sequence: 1,
        })
    }

    fn check(&self) -> Result<(), InvalidError> {
        name("a session's sender", &self.sender)?;
        name("a session's channel", &self.channel)?;
        self.active_model.as_deref().map_or(Ok(()), |model| name("a session's model", model))?;
        check_metadata(&self.metadata)
    }
}

pub(crate) fn check_metadata(metadata: &BTreeMap<String, String>) -> Result<(), InvalidError> {
    count("a session's metadata entries", metadata.len(), MAX_METADATA_ENTRIES)?;
    for (key, value) in metadata {
        name("a metadata key", key)?;
        size("a metadata value", value.len(), MAX_METADATA_VALUE_BYTES)?;
    }
    Ok(())
}
