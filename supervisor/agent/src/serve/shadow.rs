//! The shadow loop: observations, ghosts, and what people decide about them.

use futures_util::StreamExt as _;
use futures_util::stream::try_unfold;
use talon_proto::agent::{
    DecideGhostRequest, FollowGhostsRequest, GetGhostRequest, GetGhostResponse, GetShadowStatsRequest,
    GetShadowStatsResponse, Ghost, ListGhostsRequest, ListGhostsResponse, ListShadowLogRequest,
    ListShadowLogResponse, ObserveRequest, ObserveResponse, PauseShadowRequest, ShadowState,
};
use tonic::Status;

use super::client::{Client, Origin};
use super::service::{GhostEvents, Service};
use crate::error_status::store_error_status;
use crate::shadow::{Audience, ShadowError, model_problem};

/// The size of a page unless something is said, and the largest.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;

impl Service {
    pub(super) async fn observe(
        &self,
        client: &Client,
        request: ObserveRequest,
    ) -> Result<ObserveResponse, Status> {
        if client.origin == Origin::Model {
            return Err(Status::permission_denied(
                "a model observes nobody: observations come from a person's own watcher",
            ));
        }
        self.agent.shadow.hear_watcher(&client.sender, &request.limits);
        let taken = self.agent.shadow.observe(&client.sender, request).await;
        let mut taken = taken.map_err(|error| status(&error))?;
        taken.state = taken.state.map(|state| self.with_problem(state));
        Ok(taken)
    }

    /// With the reason why no ghost can be made, if there is one.
    fn with_problem(&self, state: ShadowState) -> ShadowState {
        let problem = if state.enabled {
            model_problem(&self.agent.setup().settings).unwrap_or_default()
        } else {
            ShadowError::Off.to_string()
        };
        ShadowState { problem, ..state }
    }

    pub(super) async fn list_ghosts(
        &self,
        client: &Client,
        request: ListGhostsRequest,
    ) -> Result<ListGhostsResponse, Status> {
        let ListGhostsRequest { state, everybody, page_size, page_token } = request;
        let sender = listed(client, everybody, "to see everybody's ghosts")?;
        let listed = self.agent.shadow.list(sender, &state, &page_token, page_items(page_size)).await;
        let (ghosts, next_page_token) = listed.map_err(|error| store_error_status(&error))?;
        Ok(ListGhostsResponse { ghosts, next_page_token })
    }

    pub(super) async fn get_ghost(
        &self,
        client: &Client,
        request: GetGhostRequest,
    ) -> Result<GetGhostResponse, Status> {
        self.agent.shadow.get(seen(client), &request.id).await.map_err(|error| status(&error))
    }

    pub(super) async fn decide_ghost(
        &self,
        client: &Client,
        request: DecideGhostRequest,
    ) -> Result<Ghost, Status> {
        require_person(client, "decides about a ghost", "talon shadow approve")?;
        let decided = self.agent.shadow.decide(seen(client), &client.sender, request).await;
        decided.map_err(|error| status(&error))
    }

    pub(super) async fn pause_shadow(
        &self,
        client: &Client,
        request: PauseShadowRequest,
    ) -> Result<ShadowState, Status> {
        require_person(client, "has the shadow loop rest", "talon shadow pause")?;
        let state = self.agent.shadow.pause(&client.sender, request).await;
        state.map(|state| self.with_problem(state)).map_err(|error| status(&error))
    }

    pub(super) async fn get_shadow_stats(
        &self,
        client: &Client,
        request: GetShadowStatsRequest,
    ) -> Result<GetShadowStatsResponse, Status> {
        let is_own = request.sender.is_empty() || *request.sender == *client.sender;
        if !is_own {
            client.require_operator("to see somebody else's statistics")?;
        }
        let sender = if is_own { &*client.sender } else { &*request.sender };
        let stats = self.agent.shadow.stats(sender).await;
        let mut stats = stats.map_err(|error| store_error_status(&error))?;
        stats.state = stats.state.map(|state| self.with_problem(state));
        Ok(stats)
    }

    pub(super) async fn list_shadow_log(
        &self,
        client: &Client,
        request: ListShadowLogRequest,
    ) -> Result<ListShadowLogResponse, Status> {
        let ListShadowLogRequest { everybody, page_size, page_token } = request;
        let sender = listed(client, everybody, "to see everybody's log")?;
        let logged = self.agent.shadow.log(sender, &page_token, page_items(page_size)).await;
        let (entries, next_page_token) = logged.map_err(|error| store_error_status(&error))?;
        Ok(ListShadowLogResponse { entries, next_page_token })
    }

    pub(super) async fn follow_ghosts(
        &self,
        client: &Client,
        request: FollowGhostsRequest,
    ) -> Result<GhostEvents, Status> {
        let FollowGhostsRequest { after, from_now, everybody, events } = request;
        let limits = self.agent.setup().settings.agent.limits;
        let place = self.ghost_follows.enter(&client.sender, &limits)?;
        let audience = match listed(client, everybody, "to follow everybody's ghosts")? {
            Some(_) => Audience::Sender(client.sender.clone()),
            None => Audience::Everybody,
        };
        let follower = self.agent.shadow.follow(audience, (!from_now).then_some(after), events);
        let follower = follower.map_err(|error| Status::resource_exhausted(error.to_string()))?;
        let agent = self.agent.clone();
        let stream = try_unfold((follower, place), move |(mut follower, place)| {
            let agent = agent.clone();
            async move {
                tokio::select! {
                    biased;
                    () = agent.turns.ending() => Err(Status::unavailable(
                        "the agent is ending: follow again with the sequence that was seen last",
                    )),
                    event = follower.next() => Ok(Some((event, (follower, place)))),
                }
            }
        });
        Ok(stream.boxed())
    }
}

/// Whose are listed: everybody's only for an operator who asks for it.
fn listed<'c>(client: &'c Client, everybody: bool, what: &str) -> Result<Option<&'c str>, Status> {
    if everybody {
        client.require_operator(what)?;
        return Ok(None);
    }
    Ok(Some(&client.sender))
}

/// Whose are found by their id.
fn seen(client: &Client) -> Option<&str> {
    (!client.is_operator()).then_some(&*client.sender)
}

fn require_person(client: &Client, does: &str, by_hand: &str) -> Result<(), Status> {
    if client.origin == Origin::Person {
        return Ok(());
    }
    tracing::warn!(client.uid, client.pid, origin = ?client.origin, "a decision that no person made was refused");
    Err(Status::permission_denied(format!(
        "only a person {does}: this connection is a model's or a program's; use `{by_hand}` by hand"
    )))
}

fn page_items(size: u32) -> usize {
    let size = if size == 0 { PAGE } else { size.min(MAX_PAGE) };
    usize::try_from(size).unwrap_or(usize::MAX)
}

fn status(error: &ShadowError) -> Status {
    let text = talon_error_chain::error_chain(error);
    match error {
        ShadowError::NoSuchGhost { .. } => Status::not_found(text),
        ShadowError::Ambiguous { .. } | ShadowError::Invalid(_) | ShadowError::NoSuchAction { .. } => {
            Status::invalid_argument(text)
        }
        ShadowError::Off | ShadowError::Decided { .. } | ShadowError::NoAct { .. } => {
            Status::failed_precondition(text)
        }
        ShadowError::TooManyMuted => Status::resource_exhausted(text),
        ShadowError::Store(error) => store_error_status(error),
    }
}
