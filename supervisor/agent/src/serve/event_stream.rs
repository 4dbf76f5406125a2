//! `Follow`: what happened in sessions, and what happens.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use futures_util::stream::try_unfold;
use talon_proto::agent::{Cursor, FollowRequest};
use talon_store::SessionId;
use tonic::Status;

use super::client::Client;
use super::limits::MAX_CURSORS;
use super::service::{Events, Service};
use crate::error_status::store_error_status;
use crate::events::{Audience, FollowError, Subscriber};

impl Service {
    pub(super) async fn follow(&self, client: &Client, request: FollowRequest) -> Result<Events, Status> {
        let FollowRequest { cursors, all, everybody, live } = request;
        if everybody && !all {
            return Err(Status::invalid_argument("everybody goes with all: set both, or none"));
        }
        if everybody {
            client.require_operator("to follow everybody's sessions")?;
        }
        let limits = self.agent.setup().settings.agent.limits;
        let place = self.follows.enter(&client.sender, &limits)?;
        let (known, missing) = self.known_cursors(client, cursors).await?;
        let audience = match (all, everybody) {
            (false, _) => Audience::Named,
            (true, false) => Audience::Sender(client.sender.clone()),
            (true, true) => Audience::Everybody,
        };
        let mut follower =
            Subscriber::new(self.agent.sessions.clone(), &self.agent.feed, &known, audience, live);
        follower.tell_missing(missing);
        let agent = self.agent.clone();
        let events = try_unfold(Some((follower, place)), move |following| {
            let agent = agent.clone();
            async move {
                let Some((mut follower, place)) = following else { return Ok(None) };
                tokio::select! {
                    biased;
                    () = agent.turns.ending() => Err(Status::unavailable(
                        "the agent is ending: follow again with the sequences that were seen last",
                    )),
                    event = follower.next() => match event {
                        Ok(event) => Ok(Some((event, Some((follower, place))))),
                        Err(FollowError::Store(error)) => Err(store_error_status(&error)),
                        Err(error @ FollowError::TooMany) => Err(Status::resource_exhausted(error.to_string())),
                    },
                }
            }
        });
        Ok(events.boxed())
    }

    /// The sessions that this client may see, and the ids of the others.
    async fn known_cursors(
        &self,
        client: &Client,
        cursors: Vec<Cursor>,
    ) -> Result<(Vec<(SessionId, u64)>, Vec<String>), Status> {
        if cursors.len() > MAX_CURSORS {
            return Err(Status::invalid_argument(format!(
                "{} cursors are more than {MAX_CURSORS}: follow the others in a second stream",
                cursors.len()
            )));
        }
        let mut seen = BTreeSet::new();
        let (mut known, mut missing) = (Vec::new(), Vec::new());
        for Cursor { session_id, after } in cursors {
            let id = SessionId::new(&session_id).ok();
            if id.is_some_and(|id| !seen.insert(id)) {
                return Err(Status::invalid_argument("a session has two cursors: leave one of them out"));
            }
            let found = match id {
                Some(id) => self.agent.sessions.get(id).await.map_err(|error| store_error_status(&error))?,
                None => None,
            };
            match found.filter(|session| client.can_see(session)) {
                Some(session) => known.push((session.id, after)),
                None => missing.push(session_id.chars().take(MAX_SHOWN_ID).collect()),
            }
        }
        Ok((known, missing))
    }
}

/// How much of an id that is none is repeated.
const MAX_SHOWN_ID: usize = 64;
