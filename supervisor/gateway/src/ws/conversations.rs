//! Which session a sender talks in, over one connection. Its messages take their turns in order: the next begins when the one before has
//! ended.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_proto::agent::ListSessionsRequest;
use tokio::sync::{Mutex as TurnMutex, OwnedMutexGuard};

use crate::app::App;
use crate::identity::Caller;
use crate::problem::Problem;

/// How many conversations one connection remembers: beyond it those are forgotten in which nothing goes on. They lose nothing by
/// it but a question to the agent.
const MAX_CONVERSATIONS: usize = 1024;

/// A session, once it is known; empty before.
type Conversation = Arc<TurnMutex<String>>;

/// The conversations of one connection: by subject, or by session where a message names one.
#[derive(Debug, Default)]
pub(super) struct Conversations(Mutex<HashMap<String, Conversation>>);

impl Conversations {
    /// The conversation of this key.
    fn get(&self, key: &str) -> Conversation {
        let mut all = self.0.lock();
        if all.len() >= MAX_CONVERSATIONS && !all.contains_key(key) {
            all.retain(|_, conversation| Arc::strong_count(conversation) > 1);
        }
        Arc::clone(all.entry(key.to_owned()).or_default())
    }

    /// Takes the turn in a sender's main session: the latest one of the channel, or, empty, one that is to be made.
    pub(super) async fn main(&self, app: &App, caller: &Caller) -> Result<OwnedMutexGuard<String>, Problem> {
        let mut turn = self.get(caller.subject.as_str()).lock_owned().await;
        if turn.is_empty() {
            let request = ListSessionsRequest {
                channel: caller.channel.to_string(),
                page_size: 1,
                ..Default::default()
            };
            let known = app.backends.agent(caller).list_sessions(request).await?.into_inner().sessions;
            *turn = known.into_iter().next().map(|session| session.id).unwrap_or_default();
        }
        Ok(turn)
    }

    /// Takes the turn in this session.
    pub(super) async fn named(&self, session: &str) -> OwnedMutexGuard<String> {
        let mut turn = self.get(session).lock_owned().await;
        session.clone_into(&mut turn);
        turn
    }
}
