//! The recorded and live events of a caller's sessions, as one sequence that outlives the agent: after a restart it goes on from the last
//! recorded event of each session that was given out. Where it knows none of a session, it goes on from when it began. Its cursors are
//! limited: whose events may be missing for that is told as an error.

mod changed;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use talon_proto::agent::event::Kind;
use talon_proto::agent::{Cursor, Event, FollowRequest};
use tokio::sync::watch;
use tokio::time::sleep;
use tonic::{Code, Status, Streaming};

use self::changed::changed_since;
use crate::app::App;
use crate::clock::unix_ms;
use crate::events::agent::ErrorEvent;
use crate::events::ids::agent_session_id;
use crate::events::{Envelope, ServerEvent};
use crate::identity::Caller;

/// The most sessions whose cursors one sequence keeps: as many as one `resume` names. Of those beyond, what happened before a `resume`, or
/// while the agent restarts, is not told; an error says of how many.
pub(crate) const MAX_CURSORS: usize = 1024;
/// How long to wait for an agent that is not there, at first and at most.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How far a sequence is: how many times its cursors were changed from outside, once all of that was told; `None` while it is not connected.
pub(crate) type Progress = watch::Receiver<Option<u64>>;

/// Events of sessions.
pub(crate) struct SessionEvents {
    app: App,
    caller: Caller,
    /// Also sessions without a cursor.
    all: bool,
    /// The last recorded event that was given out, by session: what comes again is not.
    cursors: HashMap<String, u64>,
    /// From when on sessions without a cursor are told, in milliseconds since 1970; `None` before it was connected.
    since: Option<u64>,
    /// Sessions that are told from then on although they have a cursor.
    from_since: HashSet<String>,
    /// How many sessions changed while nobody told it, and have no place among the cursors; nobody was told so yet.
    unplaced: usize,
    /// It was connected before, so that something may have happened meanwhile.
    is_again: bool,
    /// How often [`SessionEvents::resume`] was called.
    resumed: u64,
    stream: Option<Streaming<Event>>,
    /// The agent has told everything that was recorded before; what is missing is looked for.
    caught_up: Option<Event>,
    progress: watch::Sender<Option<u64>>,
    wait: Duration,
}

impl SessionEvents {
    /// Of all sessions of a caller, from now on; of the one that its credential is for, from its beginning.
    pub(crate) fn of_caller(app: App, caller: Caller) -> Self {
        let only = caller.session.as_deref().map(|id| (agent_session_id(id).to_owned(), 0));
        let all = only.is_none();
        Self::new(app, caller, all, only.into_iter().collect())
    }

    /// Of one session, after this event. The caller may use it.
    pub(crate) fn of_session(app: App, caller: Caller, id: &str, after: u64) -> Self {
        Self::new(app, caller, false, [(id.to_owned(), after)].into())
    }

    fn new(app: App, caller: Caller, all: bool, cursors: HashMap<String, u64>) -> Self {
        let progress = watch::Sender::new(None);
        let (since, from_since, is_again) = (None, HashSet::new(), false);
        let (resumed, stream, caught_up, wait) = (0, None, None, FIRST_WAIT);
        Self {
            app,
            caller,
            all,
            cursors,
            since,
            from_since,
            unplaced: 0,
            is_again,
            resumed,
            stream,
            caught_up,
            progress,
            wait,
        }
    }

    /// What says how far it is.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.subscribe()
    }

    /// Goes on after these events of sessions; those that the caller's credential is not for are left out. Others are told from `since` on,
    /// in milliseconds since 1970. How many of the sessions have no place, as [`MAX_CURSORS`] have one: [`too_many_sessions`] is for them.
    pub(crate) fn resume<'s>(
        &mut self,
        after: impl IntoIterator<Item = (&'s str, u64)>,
        since: Option<u64>,
    ) -> usize {
        if let Some(since) = since {
            self.since = Some(since);
            self.is_again = true;
        }
        let mut unplaced = HashSet::new();
        for (session, after) in after {
            let id = agent_session_id(session);
            let is_open = self.caller.session.as_deref().is_none_or(|only| agent_session_id(only) == id);
            if !is_open {
                continue;
            }
            if self.cursors.len() < MAX_CURSORS || self.cursors.contains_key(id) {
                self.cursors.insert(id.to_owned(), after);
                self.from_since.remove(id);
            } else {
                unplaced.insert(id);
            }
        }
        self.resumed += 1;
        self.disconnect();
        unplaced.len()
    }

    /// What is to be told of sessions that changed while nobody told it and have no place among the cursors; once.
    pub(crate) fn take_error(&mut self) -> Option<Envelope> {
        let sessions = std::mem::take(&mut self.unplaced);
        (sessions > 0).then(|| too_many_sessions(sessions, None))
    }

    /// From when on sessions without a cursor are told, for who goes on later.
    pub(crate) fn since(&self) -> Option<u64> {
        self.since.filter(|_| self.all)
    }

    /// The cursors, for the same.
    pub(crate) fn cursors(&self) -> impl Iterator<Item = (&str, u64)> {
        self.cursors.iter().map(|(id, after)| (id.as_str(), *after))
    }

    /// The next event. May be dropped and called again.
    ///
    /// # Errors
    /// The agent refuses: it knows no events, or the caller may not have them. There is nothing more then.
    pub(crate) async fn next(&mut self) -> Result<Event, Status> {
        loop {
            if let Some(event) = self.caught_up.clone()
                && !self.finds_missed(event.unix_ms).await?
            {
                (self.caught_up, self.is_again) = (None, true);
                self.progress.send_replace(Some(self.resumed));
                return Ok(event);
            }
            let Some(stream) = &mut self.stream else {
                self.connect().await?;
                continue;
            };
            let Ok(Some(event)) = stream.message().await else {
                self.disconnect();
                // An agent that ends each stream at once is not asked without a pause.
                self.pause().await;
                continue;
            };
            self.wait = FIRST_WAIT;
            match event.kind {
                Some(Kind::CaughtUp(_)) => {
                    self.caught_up = Some(event);
                    continue;
                }
                Some(Kind::SessionDeleted(_)) => {
                    self.cursors.remove(&event.session_id);
                    self.from_since.remove(&event.session_id);
                }
                _ => {}
            }
            if event.sequence == 0 {
                return Ok(event);
            }
            let is_new = self.advance(&event.session_id, event.sequence);
            // Of a session that changed meanwhile the agent tells everything.
            if is_new && !self.is_before(&event) {
                return Ok(event);
            }
        }
    }

    /// Whether sessions changed while nobody told it: then they have cursors now, and it is connected anew.
    async fn finds_missed(&mut self, now: u64) -> Result<bool, Status> {
        let since = *self.since.get_or_insert(now);
        if !self.all || !self.is_again {
            return Ok(false);
        }
        let changed = match changed_since(&self.app, &self.caller, since).await {
            Ok(changed) => changed,
            Err(status) if is_final(status.code()) => return Err(status),
            Err(_) => {
                self.disconnect();
                self.pause().await;
                return Ok(true);
            }
        };
        let found = self.place(changed);
        if found {
            self.disconnect();
        }
        Ok(found)
    }

    /// Gives sessions that changed cursors, so that they are told from `since` on. Whether any has a new one; those without a place are
    /// counted once all others have theirs.
    fn place(&mut self, changed: Vec<String>) -> bool {
        let (mut found, mut unplaced) = (false, 0);
        for id in changed {
            if self.cursors.contains_key(&id) {
                continue;
            }
            if self.cursors.len() < MAX_CURSORS {
                self.cursors.insert(id.clone(), 0);
                self.from_since.insert(id);
                found = true;
            } else {
                unplaced += 1;
            }
        }
        if !found {
            self.unplaced = unplaced;
        }
        found
    }

    /// Whether an event of a session without a cursor of its own happened before what is told.
    fn is_before(&self, event: &Event) -> bool {
        self.from_since.contains(&event.session_id) && self.since.is_some_and(|since| event.unix_ms < since)
    }

    async fn connect(&mut self) -> Result<(), Status> {
        let cursors = self.cursors().map(|(id, after)| Cursor { session_id: id.to_owned(), after }).collect();
        let request = FollowRequest { cursors, all: self.all, everybody: false, live: true };
        match self.app.backends.agent(&self.caller).follow(request).await {
            Ok(stream) => self.stream = Some(stream.into_inner()),
            Err(status) if is_final(status.code()) => return Err(status),
            Err(_) => self.pause().await,
        }
        Ok(())
    }

    fn disconnect(&mut self) {
        (self.stream, self.caught_up) = (None, None);
        self.progress.send_replace(None);
    }

    async fn pause(&mut self) {
        let wait = self.wait;
        self.wait = (wait * 2).min(LONGEST_WAIT);
        sleep(wait).await;
    }

    /// Whether it is new; then it counts as given out.
    fn advance(&mut self, session: &str, sequence: u64) -> bool {
        let has_room = self.cursors.len() < MAX_CURSORS;
        match self.cursors.get_mut(session) {
            Some(last) if *last >= sequence => return false,
            Some(last) => *last = sequence,
            None if has_room => {
                self.cursors.insert(session.to_owned(), sequence);
            }
            None => {}
        }
        true
    }
}

/// Says of how many sessions events may be missing, since [`MAX_CURSORS`] others have cursors, and what to do. `reply_to`: the `resume` that
/// names them, if one does.
pub(crate) fn too_many_sessions(sessions: usize, reply_to: Option<String>) -> Envelope {
    let message = format!(
        "sessions whose earlier events are not told, only those from now on: {sessions}. A connection keeps the cursors of {MAX_CURSORS} \
         sessions: resume fewer on each, and the others on another connection"
    );
    let event = ErrorEvent {
        session_id: None,
        reply_to,
        reason: "too_many_sessions".to_owned(),
        message,
        partial: None,
        retry_after: None,
    };
    Envelope::now(ServerEvent::Error(event), unix_ms())
}

/// Errors that another attempt does not help.
fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::Unimplemented
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::InvalidArgument
            | Code::OutOfRange
    )
}

#[cfg(test)]
mod tests;
