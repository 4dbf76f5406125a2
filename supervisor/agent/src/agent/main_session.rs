//! The one main session of a sender: where a message goes that names no session.

use talon_store::{
    Error, Key, Namespace, NewSession, PageRequest, PluginId, Session, SessionFilter, SessionId, SwapResult,
};
use tonic::Status;

use super::Agent;
use super::session_metadata::{CREATED, MAIN};
use crate::error_status::store_error_status;

/// The key-value namespace, in the agent's own database: from senders to their main sessions.
const NAMESPACE: &str = "agent-main-sessions";
/// How often it is looked again at what another request changed.
const LOOKS: usize = 4;
/// How many sessions of a sender are looked at for one that was imported.
const LOOKED_AT: u32 = 200;

impl Agent {
    /// The main session of a sender, which is created on a channel if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn main_session(&self, sender: &str, channel: &str) -> Result<Session, Status> {
        let found = self.find_main_session(sender, channel).await;
        found.map_err(|error| store_error_status(&error))?.ok_or_else(|| {
            Status::aborted("the main session was deleted and created at once: ask again in a moment")
        })
    }

    async fn find_main_session(&self, sender: &str, channel: &str) -> Result<Option<Session>, Error> {
        let (namespace, key, known) = (namespace(), Key::new(sender)?, self.store.key_values());
        for _ in 0..LOOKS {
            let before = known.get(&namespace.plugin, &key).await?;
            let id = before.as_deref().and_then(|id| SessionId::new(std::str::from_utf8(id).ok()?).ok());
            if let Some(id) = id
                && let Some(session) = self.sessions.get(id).await?
                && session.sender == sender
            {
                return Ok(Some(session));
            }
            // After an import the session is there, and nothing says which it is.
            let imported = if before.is_none() { self.marked_session(sender).await? } else { None };
            if let Some(session) = imported {
                let id = session.id.to_string().into_bytes();
                known.compare_and_set(&namespace, &key, None, Some(id)).await?;
                continue;
            }
            let session = self
                .sessions
                .create(NewSession {
                    sender: sender.to_owned(),
                    channel: channel.to_owned(),
                    metadata: [MAIN, CREATED].map(|key| (key.to_owned(), "true".to_owned())).into(),
                    ..NewSession::default()
                })
                .await?;
            let new = session.id.to_string().into_bytes();
            match known.compare_and_set(&namespace, &key, before, Some(new)).await? {
                SwapResult::Swapped => return Ok(Some(session)),
                // Another request was faster, and its session is the one.
                SwapResult::Conflict(_) => {
                    self.sessions.delete(session.id).await?;
                }
            }
        }
        Ok(None)
    }

    /// The newest session of a sender that is marked as its main one, among its latest.
    async fn marked_session(&self, sender: &str) -> Result<Option<Session>, Error> {
        let filter = SessionFilter { sender: Some(sender.to_owned()), ..SessionFilter::default() };
        let page = self.sessions.list(&filter, &PageRequest::first(LOOKED_AT)).await?;
        Ok(page.items.into_iter().find(|session| session.metadata.contains_key(MAIN)))
    }

    /// Forgets which session was a sender's main one.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn forget_main_session(&self, sender: &str) -> Result<(), Error> {
        self.store.key_values().delete(&namespace().plugin, &Key::new(sender)?).await.map(drop)
    }
}

fn namespace() -> Namespace {
    Namespace::of(PluginId::new(NAMESPACE).expect("the namespace is a well-formed id"))
}
