//! Conversations: an append-only log of messages, with attributes.

mod change;
mod message;
mod overrides;
mod query;
mod record;

use async_trait::async_trait;

use crate::error::Error;
use crate::id::SessionId;
use crate::page::{Page, PageRequest};
use crate::time::Timestamp;

pub use change::SessionChange;
pub use message::{Compaction, Message, NewMessage, Role, View};
pub(crate) use message::{check_append, message_token};
pub use overrides::Overrides;
pub use query::{MessageHit, SessionFilter, SessionQuery};
pub use record::{Expected, ExportedSession, NewSession, Session, SessionState};

/// The conversations. Two writers to one session take turns, even in different processes; they use
/// [`Expected`] to detect that another one wrote first.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Creates a session, which is active and has no messages.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    async fn create(&self, session: NewSession) -> Result<Session, Error>;

    /// A session without its messages, `None` if there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    async fn get(&self, id: SessionId) -> Result<Option<Session>, Error>;

    /// The matching sessions, newest first.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a page token of another request.
    async fn list(&self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<Session>, Error>;

    /// How many sessions a sender has, counted no further than `most`.
    ///
    /// # Errors
    /// When the database cannot be read.
    async fn count(&self, sender: &str, most: u32) -> Result<u32, Error>;

    /// Appends messages, all or none, and makes the session active.
    ///
    /// # Errors
    /// [`Error::NoSession`], [`Error::OutOfSequence`] when another writer was faster, [`Error::Invalid`].
    async fn append(
        &self,
        id: SessionId,
        expected: Expected,
        messages: Vec<NewMessage>,
    ) -> Result<Vec<Message>, Error>;

    /// Appends messages as [`Sessions::append`] does, but leaves state and time of the session as they are: they
    /// say what happened to it, and nobody spoke.
    ///
    /// # Errors
    /// As [`Sessions::append`].
    async fn note(&self, id: SessionId, messages: Vec<NewMessage>) -> Result<Vec<Message>, Error>;

    /// The message of this key, `None` if the session has none.
    ///
    /// # Errors
    /// [`Error::NoSession`].
    async fn keyed(&self, id: SessionId, key: &str) -> Result<Option<Message>, Error>;

    /// The messages of a view in their order. A page ends early when its contents grow too large.
    ///
    /// # Errors
    /// [`Error::NoSession`].
    async fn messages(&self, id: SessionId, view: View, page: &PageRequest) -> Result<Page<Message>, Error>;

    /// Replaces the older messages of the live view by a summary. They are kept, marked with the summary.
    ///
    /// # Errors
    /// As [`Sessions::append`]; [`Error::Invalid`] if there is nothing to replace.
    async fn compact(&self, id: SessionId, expected: Expected, with: Compaction) -> Result<Message, Error>;

    /// Changes a session's attributes.
    ///
    /// # Errors
    /// [`Error::NoSession`], [`Error::Invalid`].
    async fn update(&self, id: SessionId, change: SessionChange) -> Result<Session, Error>;

    /// Makes sessions idle that were not written to since `since`, at most `limit` of them; returns their
    /// ids. Their messages are kept, and `note` is appended to each. To be called periodically, with the time
    /// [`IDLE_AFTER`](crate::limits::IDLE_AFTER) ago: `Timestamp::now().before(IDLE_AFTER)`.
    ///
    /// # Errors
    /// When the database cannot be written.
    async fn idle(
        &self,
        since: Timestamp,
        limit: u32,
        note: Option<NewMessage>,
    ) -> Result<Vec<SessionId>, Error>;

    /// Makes an idle session active again.
    ///
    /// # Errors
    /// [`Error::NoSession`].
    async fn resume(&self, id: SessionId) -> Result<Session, Error>;

    /// The messages that contain the words of a text, best first.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text without words.
    async fn search(&self, query: &SessionQuery, page: &PageRequest) -> Result<Page<MessageHit>, Error>;

    /// Deletes a session and its messages; returns whether it existed.
    ///
    /// # Errors
    /// When the database cannot be written.
    async fn delete(&self, id: SessionId) -> Result<bool, Error>;

    /// A session with all its messages, including the replaced ones, as a consistent snapshot.
    ///
    /// # Errors
    /// [`Error::NoSession`].
    async fn export(&self, id: SessionId) -> Result<ExportedSession, Error>;

    /// Imports the result of [`Sessions::export`], from this or another store; returns whether it was new.
    ///
    /// # Errors
    /// [`Error::SessionExists`] if there is a different one with this id, [`Error::Invalid`].
    async fn import(&self, session: ExportedSession) -> Result<bool, Error>;
}
