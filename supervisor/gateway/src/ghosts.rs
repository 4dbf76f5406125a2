//! What the shadow loop says to a caller, as one sequence that outlives the agent: after a restart it goes on from the last change of a
//! ghost that was given out.

use std::time::Duration;

use futures_util::{Stream, stream};
use talon_proto::agent::ghost_event::Kind;
use talon_proto::agent::{FollowGhostsRequest, Ghost, GhostEvent};
use tokio::time::sleep;
use tonic::{Code, Streaming};

use crate::access::require_chat;
use crate::app::App;
use crate::clock::unix_ms;
use crate::events::ids::message_id;
use crate::events::{Envelope, ServerEvent};
use crate::identity::{Caller, Scope};

/// How long to wait for an agent that is not there, at first and at most.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long to wait for a place among the agent's streams. They are taken by what stays open for minutes or hours, and every client without
/// one asks: sooner, all of them together would be a load of their own.
const WAIT_FOR_PLACE: Duration = Duration::from_secs(60);

/// Ghosts and observations of a caller, from now on.
pub(crate) struct GhostFeed {
    app: App,
    caller: Caller,
    /// Sequences are not less than the time, so that now is one, too.
    after: u64,
    stream: Option<Streaming<GhostEvent>>,
    wait: Duration,
}

impl GhostFeed {
    /// Of a caller who is a person; `None` for a channel, and for a credential that is for one session.
    pub(crate) fn of_caller(app: App, caller: Caller) -> Option<Self> {
        let is_person = !caller.scopes.contain(Scope::Channel) && caller.session.is_none();
        let may = is_person && require_chat(&caller).is_ok();
        may.then(|| Self { app, caller, after: unix_ms(), stream: None, wait: FIRST_WAIT })
    }

    /// The next event. May be dropped and called again. `None`: the agent gives none.
    pub(crate) async fn next(&mut self) -> Option<Envelope> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.connect().await?;
                continue;
            };
            let Ok(Some(event)) = stream.message().await else {
                self.stream = None;
                // An agent that ends each stream at once is not asked without a pause.
                self.pause().await;
                continue;
            };
            self.wait = FIRST_WAIT;
            match event.kind {
                Some(Kind::Ghost(ghost)) => {
                    self.after = self.after.max(ghost.sequence);
                    return Some(envelope(ghost));
                }
                Some(Kind::Event(seen)) => {
                    return Some(Envelope::now(ServerEvent::ShadowEvent(seen.into()), unix_ms()));
                }
                Some(Kind::CaughtUp(_)) | None => {}
            }
        }
    }

    /// `None`: another attempt does not help.
    async fn connect(&mut self) -> Option<()> {
        let request =
            FollowGhostsRequest { after: self.after, events: true, ..FollowGhostsRequest::default() };
        match self.app.backends.agent(&self.caller).follow_ghosts(request).await {
            Ok(stream) => self.stream = Some(stream.into_inner()),
            Err(status) if is_final(status.code()) => return None,
            Err(status) if status.code() == Code::ResourceExhausted => sleep(WAIT_FOR_PLACE).await,
            Err(_) => self.pause().await,
        }
        Some(())
    }

    async fn pause(&mut self) {
        let wait = self.wait;
        self.wait = (wait * 2).min(LONGEST_WAIT);
        sleep(wait).await;
    }
}

/// The events as a stream; an empty one for who has none.
pub(crate) fn events(feed: Option<GhostFeed>) -> impl Stream<Item = Envelope> + Send {
    stream::unfold(feed, |feed| async move {
        let mut feed = feed?;
        let event = feed.next().await?;
        Some((event, Some(feed)))
    })
}

/// The same change has the same id, whenever it is sent.
fn envelope(ghost: Ghost) -> Envelope {
    let id = message_id(&format!("ghost/{}", ghost.id), ghost.sequence);
    Envelope { id, event: ServerEvent::ShadowGhost(ghost.into()), timestamp: unix_ms(), sequence: None }
}

fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::Unimplemented | Code::PermissionDenied | Code::Unauthenticated | Code::InvalidArgument
    )
}
