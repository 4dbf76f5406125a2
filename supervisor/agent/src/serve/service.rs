//! The service: passes each request to its file.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use talon_agent_settings::linked_sender;
use talon_proto::agent::agent_server::Agent as Rpc;
use talon_proto::agent::{
    Approval, ApprovalRule, AskRequest, AttachRequest, CancelRequest, CancelResponse, CompactSessionRequest,
    CompactSessionResponse, CompleteRequest, CreateSessionRequest, DecideGhostRequest,
    DecideJobProposalRequest, DecideRequest, DeleteSessionRequest, DeleteSessionResponse, EmbedRequest,
    EmbedResponse, Event, FollowGhostsRequest, FollowRequest, ForgetMemoriesRequest, ForgetMemoriesResponse,
    ForgetSenderRequest, ForgetSenderResponse, GetCostsRequest, GetCostsResponse, GetGhostRequest,
    GetGhostResponse, GetLoopRequest, GetMemoryRequest, GetMetricsRequest, GetMetricsResponse,
    GetSessionRequest, GetSessionResponse, GetShadowStatsRequest, GetShadowStatsResponse, GetStatusRequest,
    GetStatusResponse, Ghost, GhostEvent, Job, JobProposal, ListApprovalRulesRequest,
    ListApprovalRulesResponse, ListApprovalsRequest, ListApprovalsResponse, ListCostsRequest,
    ListCostsResponse, ListGhostsRequest, ListGhostsResponse, ListJobsRequest, ListJobsResponse,
    ListMemoriesRequest, ListMemoriesResponse, ListModelsRequest, ListModelsResponse,
    ListNotificationsRequest, ListNotificationsResponse, ListOccurrencesRequest, ListOccurrencesResponse,
    ListSessionsRequest, ListSessionsResponse, ListShadowLogRequest, ListShadowLogResponse, ListToolsRequest,
    ListToolsResponse, LoopState, Memory, Notification, ObserveRequest, ObserveResponse, Occurrence,
    PauseJobRequest, PauseShadowRequest, Plan, ResumeSessionRequest, ResumeSessionResponse,
    RetryNotificationsRequest, RetryNotificationsResponse, RevokeApprovalRuleRequest, RunJobRequest, Session,
    SetPlanRequest, ShadowState, TestExtensionRequest, TestExtensionResponse, TestNotificationRequest,
    UndoTurnsRequest, UndoTurnsResponse, UpdateSessionRequest, WatchBusRequest, WatchBusResponse,
};
use talon_store::{Error, PageRequest, PageToken, Session as Kept, SessionId};
use talon_trace_context::{TRACE_PARENT, TraceParent};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::client::Client;
use super::follow_limiter::FollowLimiter;
use super::message_counts::MessageCounts;
use super::session_counts::SessionCounts;
use super::turn_stream::Chunks;
use crate::agent::Agent;
use crate::error_status::{no_session, store_error_status};

/// The events of one follower.
pub(super) type Events = BoxStream<'static, Result<Event, Status>>;

/// The events of one follower of ghosts.
pub(super) type GhostEvents = BoxStream<'static, Result<GhostEvent, Status>>;

/// What one subscriber of the event bus gets.
pub(super) type BusItems = BoxStream<'static, Result<WatchBusResponse, Status>>;

/// Serves all connections.
pub(super) struct Service {
    pub(super) agent: Arc<Agent>,
    /// Streams of `Follow`.
    pub(super) follows: FollowLimiter,
    /// Streams of `FollowGhosts`.
    pub(super) ghost_follows: FollowLimiter,
    /// Streams of `WatchBus`.
    pub(super) bus_follows: FollowLimiter,
    /// How many sessions senders have.
    pub(super) session_counts: SessionCounts,
    /// How many messages sessions have.
    pub(super) message_counts: MessageCounts,
}

impl Service {
    pub(super) fn new(agent: Arc<Agent>) -> Self {
        let (follows, ghost_follows) = (FollowLimiter::new("sessions"), FollowLimiter::new("ghosts"));
        let bus_follows = FollowLimiter::new("the event bus");
        let (session_counts, message_counts) = (SessionCounts::default(), MessageCounts::default());
        Self { agent, follows, ghost_follows, bus_follows, session_counts, message_counts }
    }

    /// Who a request is for: the one place that says so.
    ///
    /// # Errors
    /// INTERNAL: every connection carries its client.
    fn client<T>(&self, request: &Request<T>) -> Result<Client, Status> {
        let mut client = Client::of(request)?;
        let setup = self.agent.setup();
        let linked = linked_sender(&setup.settings.agent.identities, &client.sender);
        if *linked != *client.sender {
            client.sender = linked.into();
        }
        Ok(client)
    }

    /// A session that this client may see.
    ///
    /// # Errors
    /// NOT_FOUND also for one that they may not.
    pub(super) async fn session(&self, client: &Client, id: &str) -> Result<Kept, Status> {
        let id = SessionId::new(id).map_err(|_| no_session(id))?;
        let session = self.agent.sessions.get(id).await.map_err(|error| store_error_status(&error))?;
        session.filter(|session| client.can_see(session)).ok_or_else(|| no_session(&id.to_string()))
    }
}

/// The requested page.
pub(super) fn page(token: &str, size: u32) -> Result<PageRequest, Error> {
    if token.is_empty() {
        return Ok(PageRequest::first(size));
    }
    Ok(PageRequest::after(PageToken::parse(token)?, size))
}

/// The token of the next page on the wire.
pub(super) fn token(next: Option<PageToken>) -> String {
    next.map(|token| token.to_string()).unwrap_or_default()
}

/// The client's position in a trace. One that is not as the standard has it, or that is there twice, counts as none.
fn trace_parent(metadata: &MetadataMap) -> Option<TraceParent> {
    let mut all = metadata.get_all(TRACE_PARENT).iter();
    let parent = all.next()?.to_str().ok()?.parse().ok()?;
    all.next().is_none().then_some(parent)
}

/// Each request carries its client. Requests that change nothing.
macro_rules! answer {
    ($service:ident, $request:ident, $method:ident) => {{
        let client = $service.client(&$request)?;
        $service.$method(&client, $request.into_inner()).await.map(Response::new)
    }};
}

/// The same for requests that change something: each is recorded before it is answered, refusals as well.
macro_rules! change {
    ($service:ident, $request:ident, $method:ident) => {{
        let client = $service.client(&$request)?;
        let recording = $service.begin_recording(&client, &$request).await?;
        let answer = $service.$method(&client, $request.into_inner()).await;
        recording.finish(&answer).await;
        answer.map(Response::new)
    }};
}

#[tonic::async_trait]
impl Rpc for Service {
    type AskStream = Chunks;

    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<Chunks>, Status> {
        let client = self.client(&request)?;
        let trace = trace_parent(request.metadata());
        self.ask(&client, request.into_inner(), trace).await.map(Response::new)
    }

    type CompleteStream = Chunks;

    async fn complete(&self, request: Request<CompleteRequest>) -> Result<Response<Chunks>, Status> {
        let client = self.client(&request)?;
        let trace = trace_parent(request.metadata());
        self.complete(&client, request.into_inner(), trace).await.map(Response::new)
    }

    async fn embed(&self, request: Request<EmbedRequest>) -> Result<Response<EmbedResponse>, Status> {
        answer!(self, request, embed)
    }

    type AttachStream = Chunks;

    async fn attach(&self, request: Request<AttachRequest>) -> Result<Response<Chunks>, Status> {
        answer!(self, request, attach)
    }

    type FollowStream = Events;

    async fn follow(&self, request: Request<FollowRequest>) -> Result<Response<Events>, Status> {
        answer!(self, request, follow)
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        change!(self, request, cancel)
    }

    async fn get_loop(&self, request: Request<GetLoopRequest>) -> Result<Response<LoopState>, Status> {
        answer!(self, request, get_loop)
    }

    async fn create_session(
        &self,
        request: Request<CreateSessionRequest>,
    ) -> Result<Response<Session>, Status> {
        change!(self, request, create_session)
    }

    async fn list_sessions(
        &self,
        request: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        answer!(self, request, list_sessions)
    }

    async fn get_session(
        &self,
        request: Request<GetSessionRequest>,
    ) -> Result<Response<GetSessionResponse>, Status> {
        answer!(self, request, get_session)
    }

    async fn update_session(
        &self,
        request: Request<UpdateSessionRequest>,
    ) -> Result<Response<Session>, Status> {
        change!(self, request, update_session)
    }

    async fn resume_session(
        &self,
        request: Request<ResumeSessionRequest>,
    ) -> Result<Response<ResumeSessionResponse>, Status> {
        change!(self, request, resume_session)
    }

    async fn delete_session(
        &self,
        request: Request<DeleteSessionRequest>,
    ) -> Result<Response<DeleteSessionResponse>, Status> {
        change!(self, request, delete_session)
    }

    async fn compact_session(
        &self,
        request: Request<CompactSessionRequest>,
    ) -> Result<Response<CompactSessionResponse>, Status> {
        change!(self, request, compact_session)
    }

    async fn undo_turns(
        &self,
        request: Request<UndoTurnsRequest>,
    ) -> Result<Response<UndoTurnsResponse>, Status> {
        change!(self, request, undo_turns)
    }

    async fn set_plan(&self, request: Request<SetPlanRequest>) -> Result<Response<Plan>, Status> {
        change!(self, request, set_plan)
    }

    async fn list_approvals(
        &self,
        request: Request<ListApprovalsRequest>,
    ) -> Result<Response<ListApprovalsResponse>, Status> {
        answer!(self, request, list_approvals)
    }

    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<Approval>, Status> {
        change!(self, request, decide)
    }

    async fn list_approval_rules(
        &self,
        request: Request<ListApprovalRulesRequest>,
    ) -> Result<Response<ListApprovalRulesResponse>, Status> {
        answer!(self, request, list_approval_rules)
    }

    async fn revoke_approval_rule(
        &self,
        request: Request<RevokeApprovalRuleRequest>,
    ) -> Result<Response<ApprovalRule>, Status> {
        change!(self, request, revoke_approval_rule)
    }

    async fn list_memories(
        &self,
        request: Request<ListMemoriesRequest>,
    ) -> Result<Response<ListMemoriesResponse>, Status> {
        answer!(self, request, list_memories)
    }

    async fn get_memory(&self, request: Request<GetMemoryRequest>) -> Result<Response<Memory>, Status> {
        answer!(self, request, get_memory)
    }

    async fn forget_memories(
        &self,
        request: Request<ForgetMemoriesRequest>,
    ) -> Result<Response<ForgetMemoriesResponse>, Status> {
        change!(self, request, forget_memories)
    }

    async fn forget_sender(
        &self,
        request: Request<ForgetSenderRequest>,
    ) -> Result<Response<ForgetSenderResponse>, Status> {
        change!(self, request, forget_sender)
    }

    async fn list_jobs(
        &self,
        request: Request<ListJobsRequest>,
    ) -> Result<Response<ListJobsResponse>, Status> {
        answer!(self, request, list_jobs)
    }

    async fn list_occurrences(
        &self,
        request: Request<ListOccurrencesRequest>,
    ) -> Result<Response<ListOccurrencesResponse>, Status> {
        answer!(self, request, list_occurrences)
    }

    async fn run_job(&self, request: Request<RunJobRequest>) -> Result<Response<Occurrence>, Status> {
        change!(self, request, run_job)
    }

    async fn decide_job_proposal(
        &self,
        request: Request<DecideJobProposalRequest>,
    ) -> Result<Response<JobProposal>, Status> {
        change!(self, request, decide_job_proposal)
    }

    async fn pause_job(&self, request: Request<PauseJobRequest>) -> Result<Response<Job>, Status> {
        change!(self, request, pause_job)
    }

    async fn list_notifications(
        &self,
        request: Request<ListNotificationsRequest>,
    ) -> Result<Response<ListNotificationsResponse>, Status> {
        answer!(self, request, list_notifications)
    }

    async fn retry_notifications(
        &self,
        request: Request<RetryNotificationsRequest>,
    ) -> Result<Response<RetryNotificationsResponse>, Status> {
        change!(self, request, retry_notifications)
    }

    async fn test_notification(
        &self,
        request: Request<TestNotificationRequest>,
    ) -> Result<Response<Notification>, Status> {
        change!(self, request, test_notification)
    }

    async fn list_models(
        &self,
        request: Request<ListModelsRequest>,
    ) -> Result<Response<ListModelsResponse>, Status> {
        answer!(self, request, list_models)
    }

    async fn list_tools(
        &self,
        request: Request<ListToolsRequest>,
    ) -> Result<Response<ListToolsResponse>, Status> {
        answer!(self, request, list_tools)
    }

    async fn list_costs(
        &self,
        request: Request<ListCostsRequest>,
    ) -> Result<Response<ListCostsResponse>, Status> {
        answer!(self, request, list_costs)
    }

    async fn get_costs(
        &self,
        request: Request<GetCostsRequest>,
    ) -> Result<Response<GetCostsResponse>, Status> {
        answer!(self, request, get_costs)
    }

    async fn get_status(
        &self,
        request: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        answer!(self, request, get_status)
    }

    async fn get_metrics(
        &self,
        request: Request<GetMetricsRequest>,
    ) -> Result<Response<GetMetricsResponse>, Status> {
        answer!(self, request, get_metrics)
    }

    async fn test_extension(
        &self,
        request: Request<TestExtensionRequest>,
    ) -> Result<Response<TestExtensionResponse>, Status> {
        change!(self, request, test_extension)
    }

    async fn observe(&self, request: Request<ObserveRequest>) -> Result<Response<ObserveResponse>, Status> {
        answer!(self, request, observe)
    }

    async fn list_ghosts(
        &self,
        request: Request<ListGhostsRequest>,
    ) -> Result<Response<ListGhostsResponse>, Status> {
        answer!(self, request, list_ghosts)
    }

    async fn get_ghost(
        &self,
        request: Request<GetGhostRequest>,
    ) -> Result<Response<GetGhostResponse>, Status> {
        answer!(self, request, get_ghost)
    }

    async fn decide_ghost(&self, request: Request<DecideGhostRequest>) -> Result<Response<Ghost>, Status> {
        change!(self, request, decide_ghost)
    }

    async fn pause_shadow(
        &self,
        request: Request<PauseShadowRequest>,
    ) -> Result<Response<ShadowState>, Status> {
        change!(self, request, pause_shadow)
    }

    async fn get_shadow_stats(
        &self,
        request: Request<GetShadowStatsRequest>,
    ) -> Result<Response<GetShadowStatsResponse>, Status> {
        answer!(self, request, get_shadow_stats)
    }

    async fn list_shadow_log(
        &self,
        request: Request<ListShadowLogRequest>,
    ) -> Result<Response<ListShadowLogResponse>, Status> {
        answer!(self, request, list_shadow_log)
    }

    type FollowGhostsStream = GhostEvents;

    async fn follow_ghosts(
        &self,
        request: Request<FollowGhostsRequest>,
    ) -> Result<Response<GhostEvents>, Status> {
        answer!(self, request, follow_ghosts)
    }

    type WatchBusStream = BusItems;

    async fn watch_bus(&self, request: Request<WatchBusRequest>) -> Result<Response<BusItems>, Status> {
        answer!(self, request, watch_bus)
    }
}
