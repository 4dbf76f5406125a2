//! The gRPC service of the scripted agent.

use std::sync::Arc;

use talon_proto::agent::agent_server::Agent;
use talon_proto::agent::forget_memories_request::Kind;
use talon_proto::agent::{
    Approval, ApprovalRule, AskRequest, AttachRequest, CancelRequest, CancelResponse, Chunk,
    CompactSessionRequest, CompactSessionResponse, CompleteRequest, CreateSessionRequest, DecideGhostRequest,
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
    ListToolsResponse, LoopState, Memory, Notification, Observation, ObserveRequest, ObserveResponse,
    Occurrence, PauseJobRequest, PauseShadowRequest, Plan, ResumeSessionRequest, ResumeSessionResponse,
    RetryNotificationsRequest, RetryNotificationsResponse, RevokeApprovalRuleRequest, RunJobRequest,
    Sampling, Session, SetPlanRequest, ShadowState, TestExtensionRequest, TestExtensionResponse,
    TestNotificationRequest, UndoTurnsRequest, UndoTurnsResponse, UpdateSessionRequest, WatchBusRequest,
    WatchBusResponse,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::fixtures;
use super::state::AgentState;

pub(super) struct Service {
    pub(super) world: Arc<AgentState>,
}

type Answer<T> = Result<Response<T>, Status>;
type Chunks = ReceiverStream<Result<Chunk, Status>>;

/// A page of the list: `page_token` is the number of earlier items.
fn page<T>(all: Vec<T>, size: u32, token: &str) -> Result<(Vec<T>, String), Status> {
    let from = match token {
        "" => 0,
        token => token.parse().map_err(|_| Status::invalid_argument("no such page"))?,
    };
    // Small pages, so that every client has to use several.
    let size = usize::try_from(size.clamp(1, 2)).unwrap_or(1);
    let next = if from + size < all.len() { (from + size).to_string() } else { String::new() };
    Ok((all.into_iter().skip(from).take(size).collect(), next))
}

fn ghost(id: &str) -> Result<Ghost, Status> {
    let found = fixtures::ghosts().into_iter().find(|ghost| ghost.id == id);
    found.ok_or_else(|| {
        Status::not_found(format!("there is no ghost {id}: `talon shadow list` shows those there are"))
    })
}

impl Service {
    fn session(&self, id: &str) -> Result<Session, Status> {
        let found = fixtures::sessions().into_iter().find(|session| session.id == id);
        found.ok_or_else(|| {
            Status::not_found(format!("there is no session {id}: `talon session list` has those that are"))
        })
    }
}

#[tonic::async_trait]
impl Agent for Service {
    type AskStream = Chunks;
    type AttachStream = Chunks;
    type FollowStream = tokio_stream::Pending<Result<Event, Status>>;

    async fn follow(&self, _: Request<FollowRequest>) -> Answer<Self::FollowStream> {
        Err(Status::unimplemented("the test agent keeps no events"))
    }

    async fn ask(&self, request: Request<AskRequest>) -> Answer<Chunks> {
        let request = request.into_inner();
        let AskRequest { session_id, text, model, thinking, schema, tools, no_tools, .. } = &request;
        self.world.record(format!(
            "Ask {text:?} session={session_id} model={model} thinking={thinking} schema={} tools={tools:?} no_tools={no_tools}",
            schema.len()
        ));
        let steps = self.world.steps(&request)?;
        Ok(Response::new(ReceiverStream::new(self.world.play(steps, self.world.decided.subscribe()))))
    }

    type CompleteStream = tokio_stream::Pending<Result<Chunk, Status>>;

    async fn complete(&self, _: Request<CompleteRequest>) -> Answer<Self::CompleteStream> {
        Err(Status::unimplemented("the test agent completes nothing"))
    }

    async fn embed(&self, _: Request<EmbedRequest>) -> Answer<EmbedResponse> {
        Err(Status::unimplemented("the test agent makes no vectors"))
    }

    async fn attach(&self, request: Request<AttachRequest>) -> Answer<Chunks> {
        self.world.record(format!("Attach {}", request.into_inner().session_id));
        let attached = self.world.attached.lock().clone();
        let (steps, decided) = attached.ok_or_else(|| Status::not_found("the session is in no turn"))?;
        Ok(Response::new(ReceiverStream::new(self.world.play(steps, decided))))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Answer<CancelResponse> {
        self.world.record(format!("Cancel {}", request.into_inner().session_id));
        self.world.cancelled.send_modify(|times| *times += 1);
        Ok(Response::new(CancelResponse { cancelled: true }))
    }

    async fn get_loop(&self, _: Request<GetLoopRequest>) -> Answer<LoopState> {
        Err(Status::not_found("the session is in no turn"))
    }

    async fn create_session(&self, request: Request<CreateSessionRequest>) -> Answer<Session> {
        let CreateSessionRequest { model, thinking, tools, .. } = request.into_inner();
        self.world.record(format!("CreateSession model={model} thinking={thinking} tools={tools:?}"));
        Ok(Response::new(Session { model, thinking, tools, ..self.session(fixtures::SESSION)? }))
    }

    async fn list_sessions(&self, request: Request<ListSessionsRequest>) -> Answer<ListSessionsResponse> {
        let ListSessionsRequest { all, channel, page_size, page_token } = request.into_inner();
        self.world.record(format!("ListSessions all={all} channel={channel}"));
        let (sessions, next_page_token) = page(fixtures::sessions(), page_size, &page_token)?;
        Ok(Response::new(ListSessionsResponse { sessions, next_page_token }))
    }

    async fn get_session(&self, request: Request<GetSessionRequest>) -> Answer<GetSessionResponse> {
        let GetSessionRequest { session_id, all, page_size, page_token } = request.into_inner();
        self.world.record(format!("GetSession {session_id} all={all}"));
        let session = Some(self.session(&session_id)?);
        let (messages, next_page_token) = page(fixtures::messages(), page_size, &page_token)?;
        Ok(Response::new(GetSessionResponse { session, messages, next_page_token }))
    }

    async fn update_session(&self, request: Request<UpdateSessionRequest>) -> Answer<Session> {
        let request = request.into_inner();
        let sampling = request.sampling.map(|sampling| {
            let Sampling { temperature, top_p, max_tokens } = sampling;
            format!(" sampling={temperature:?},{top_p:?},{max_tokens:?}")
        });
        let verbosity = request.verbosity.as_ref().map(|word| format!(" verbosity={word}"));
        let metadata = (!request.metadata.is_empty()).then(|| format!(" metadata={:?}", request.metadata));
        let wanted: String = [sampling, verbosity, metadata].into_iter().flatten().collect();
        let UpdateSessionRequest { session_id, model, thinking, tools, local_only, .. } = request;
        let tools = tools.map(|list| list.tools);
        let local_only = local_only.map(|only| format!(" local_only={only}")).unwrap_or_default();
        self.world.record(format!(
            "UpdateSession {session_id} {model:?} {thinking:?} {tools:?}{local_only}{wanted}"
        ));
        Ok(Response::new(self.session(&session_id)?))
    }

    async fn resume_session(&self, request: Request<ResumeSessionRequest>) -> Answer<ResumeSessionResponse> {
        let session = self.session(&request.into_inner().session_id)?;
        let continues = session.turn != "idle";
        Ok(Response::new(ResumeSessionResponse { session: Some(session), continues }))
    }

    async fn delete_session(&self, request: Request<DeleteSessionRequest>) -> Answer<DeleteSessionResponse> {
        let id = request.into_inner().session_id;
        self.world.record(format!("DeleteSession {id}"));
        self.session(&id)?;
        Ok(Response::new(DeleteSessionResponse {}))
    }

    async fn compact_session(
        &self,
        request: Request<CompactSessionRequest>,
    ) -> Answer<CompactSessionResponse> {
        let CompactSessionRequest { session_id, keep_turns } = request.into_inner();
        self.world.record(format!("CompactSession {session_id} keep={keep_turns}"));
        self.session(&session_id)?;
        let summary = "Greetings were exchanged.".to_owned();
        Ok(Response::new(CompactSessionResponse {
            messages: 12,
            tokens_before: 4321,
            tokens_after: 321,
            summary,
        }))
    }

    async fn undo_turns(&self, request: Request<UndoTurnsRequest>) -> Answer<UndoTurnsResponse> {
        let UndoTurnsRequest { session_id, turns } = request.into_inner();
        self.world.record(format!("UndoTurns {session_id} turns={turns}"));
        self.session(&session_id)?;
        Ok(Response::new(UndoTurnsResponse { turns: turns.max(1), text: "Hello\nyou".into(), calls: 2 }))
    }

    async fn set_plan(&self, request: Request<SetPlanRequest>) -> Answer<Plan> {
        let SetPlanRequest { session_id, steps, revision } = request.into_inner();
        let texts: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
        self.world.record(format!("SetPlan {session_id} revision={revision} {texts:?}"));
        let plan = Plan { steps, revision: revision + 1, approved: false, changed_by: "person".into() };
        self.world.decided.send_modify(|times| *times += 1);
        Ok(Response::new(plan))
    }

    async fn list_approvals(&self, request: Request<ListApprovalsRequest>) -> Answer<ListApprovalsResponse> {
        let ListApprovalsRequest { all, session_id, everybody } = request.into_inner();
        if everybody {
            return Err(Status::permission_denied("others' approvals are for operators"));
        }
        let approvals = self.world.approvals.lock().clone();
        let wanted = |approval: &Approval| {
            (all || approval.state == "pending")
                && (session_id.is_empty() || approval.session_id == session_id)
        };
        Ok(Response::new(ListApprovalsResponse { approvals: approvals.into_iter().filter(wanted).collect() }))
    }

    async fn decide(&self, request: Request<DecideRequest>) -> Answer<Approval> {
        let DecideRequest { id, approve, digest, reason, answer, scope, patterns, plan_revision } =
            request.into_inner();
        let plan = if plan_revision > 0 { format!(" plan={plan_revision}") } else { String::new() };
        let answer = if answer.is_empty() { answer } else { format!(" answer={answer:?}") };
        let scope = if matches!(&*scope, "" | "once") {
            String::new()
        } else {
            format!(" scope={scope} {patterns:?}")
        };
        self.world.record(format!(
            "Decide {id} approve={approve} digest={digest} reason={reason:?}{answer}{scope}{plan}"
        ));
        let mut approvals = self.world.approvals.lock();
        let found = approvals.iter_mut().find(|approval| approval.id == id);
        let Some(approval) = found else { return Err(Status::not_found("there is no such approval")) };
        if approval.state != "pending" {
            return Err(Status::failed_precondition(format!("it is {} already", approval.state)));
        }
        approval.state = if approve { "approved" } else { "denied" }.to_owned();
        self.world.decided.send_modify(|times| *times += 1);
        Ok(Response::new(approval.clone()))
    }

    async fn list_approval_rules(
        &self,
        request: Request<ListApprovalRulesRequest>,
    ) -> Answer<ListApprovalRulesResponse> {
        self.world.record(format!("ListApprovalRules everybody={}", request.into_inner().everybody));
        let rule = ApprovalRule {
            id: "01K0000000000000000000RUL1".to_owned(),
            sender: "anna".to_owned(),
            plugin: "shell".to_owned(),
            action: "run".to_owned(),
            arguments: [("cwd".to_owned(), "/src".to_owned())].into(),
            patterns: [("command".to_owned(), "make *".to_owned())].into(),
            created_by: "anna".to_owned(),
            created_unix_ms: 1_700_000_000_000,
            uses: 2,
            used_unix_ms: 1_700_000_100_000,
            ..ApprovalRule::default()
        };
        let here = ApprovalRule { session_id: "S1".to_owned(), uses: 0, used_unix_ms: 0, ..rule.clone() };
        Ok(Response::new(ListApprovalRulesResponse { rules: vec![rule, here] }))
    }

    async fn revoke_approval_rule(
        &self,
        request: Request<RevokeApprovalRuleRequest>,
    ) -> Answer<ApprovalRule> {
        let id = request.into_inner().id;
        self.world.record(format!("RevokeApprovalRule {id}"));
        let (plugin, action) = ("shell".to_owned(), "run".to_owned());
        Ok(Response::new(ApprovalRule { id, plugin, action, ..ApprovalRule::default() }))
    }

    async fn forget_sender(&self, request: Request<ForgetSenderRequest>) -> Answer<ForgetSenderResponse> {
        self.world.record(format!("ForgetSender {}", request.into_inner().sender));
        let sessions = 2;
        Ok(Response::new(ForgetSenderResponse {
            sessions,
            memories: 1,
            rules: 3,
            approvals: 0,
            shared_memories: 2,
            notifications: 4,
            ghosts: 1,
        }))
    }

    async fn list_memories(&self, request: Request<ListMemoriesRequest>) -> Answer<ListMemoriesResponse> {
        let ListMemoriesRequest { text, tags, page_size, page_token } = request.into_inner();
        self.world.record(format!("ListMemories {text:?} {tags:?}"));
        let found =
            fixtures::memories().into_iter().filter(|memory| memory.content.contains(&text)).collect();
        let (memories, next_page_token) = page(found, page_size, &page_token)?;
        Ok(Response::new(ListMemoriesResponse { memories, next_page_token }))
    }

    async fn get_memory(&self, request: Request<GetMemoryRequest>) -> Answer<Memory> {
        let id = request.into_inner().id;
        let found = fixtures::memories().into_iter().find(|memory| memory.id == id);
        found.map(Response::new).ok_or_else(|| Status::not_found(format!("there is no memory {id}")))
    }

    async fn forget_memories(
        &self,
        request: Request<ForgetMemoriesRequest>,
    ) -> Answer<ForgetMemoriesResponse> {
        let what = request.into_inner().kind;
        let forgotten = match &what {
            Some(Kind::Id(id)) => u64::from(fixtures::memories().iter().any(|memory| memory.id == *id)),
            Some(Kind::Tag(_)) => 2,
            _ => 0,
        };
        self.world.record(format!(
            "ForgetMemories {}",
            match what {
                Some(Kind::Id(id)) => id,
                Some(Kind::Tag(tag)) => format!("tag {tag}"),
                Some(Kind::NotUsedSinceUnixMs(_)) => "unused".to_owned(),
                None => "nothing".to_owned(),
            }
        ));
        Ok(Response::new(ForgetMemoriesResponse { forgotten }))
    }

    async fn list_models(&self, _: Request<ListModelsRequest>) -> Answer<ListModelsResponse> {
        let providers = self.world.providers.lock().clone();
        Ok(Response::new(fixtures::models(providers)))
    }

    async fn list_tools(&self, _: Request<ListToolsRequest>) -> Answer<ListToolsResponse> {
        Ok(Response::new(ListToolsResponse { tools: fixtures::tools() }))
    }

    async fn list_costs(&self, _: Request<ListCostsRequest>) -> Answer<ListCostsResponse> {
        Ok(Response::new(ListCostsResponse { costs: fixtures::costs().by_model }))
    }

    async fn get_costs(&self, _: Request<GetCostsRequest>) -> Answer<GetCostsResponse> {
        Ok(Response::new(fixtures::costs()))
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Answer<GetStatusResponse> {
        let providers = self.world.providers.lock().clone();
        Ok(Response::new(fixtures::status(providers)))
    }

    async fn get_metrics(&self, _: Request<GetMetricsRequest>) -> Answer<GetMetricsResponse> {
        Ok(Response::new(GetMetricsResponse::default()))
    }

    async fn list_jobs(&self, _: Request<ListJobsRequest>) -> Answer<ListJobsResponse> {
        Ok(Response::new(ListJobsResponse { jobs: fixtures::jobs(), proposals: fixtures::proposals() }))
    }

    async fn list_occurrences(
        &self,
        request: Request<ListOccurrencesRequest>,
    ) -> Answer<ListOccurrencesResponse> {
        let ListOccurrencesRequest { job, page_size, page_token } = request.into_inner();
        let mut found = fixtures::occurrences();
        found.retain(|occurrence| job.is_empty() || occurrence.job == job);
        let (occurrences, next_page_token) = page(found, page_size, &page_token)?;
        Ok(Response::new(ListOccurrencesResponse { occurrences, next_page_token }))
    }

    async fn run_job(&self, request: Request<RunJobRequest>) -> Answer<Occurrence> {
        let job = request.into_inner().job;
        self.world.record(format!("RunJob {job}"));
        let found = fixtures::occurrences().into_iter().find(|occurrence| occurrence.job == job);
        found.map(Response::new).ok_or_else(|| Status::not_found(format!("there is no job {job}")))
    }

    async fn pause_job(&self, request: Request<PauseJobRequest>) -> Answer<Job> {
        let PauseJobRequest { job, paused } = request.into_inner();
        self.world.record(format!("PauseJob {job} {paused}"));
        let found = fixtures::jobs().into_iter().find(|found| found.id == job);
        let found = found.ok_or_else(|| Status::not_found(format!("there is no job {job}")))?;
        let next_unix_ms = found.next_unix_ms.filter(|_| !paused);
        Ok(Response::new(Job { paused, next_unix_ms, ..found }))
    }

    async fn decide_job_proposal(&self, request: Request<DecideJobProposalRequest>) -> Answer<JobProposal> {
        let DecideJobProposalRequest { job, hash, accept } = request.into_inner();
        self.world.record(format!("DecideJobProposal {job} {hash} {accept}"));
        let is_it = |found: &JobProposal| found.job == job && found.hash == hash;
        let found = fixtures::proposals().into_iter().find(is_it);
        let found = found.ok_or_else(|| Status::not_found(format!("no plugin proposes a job {job}")))?;
        let state = if accept { "accepted" } else { "rejected" }.to_owned();
        Ok(Response::new(JobProposal { state, decided_unix_ms: Some(fixtures::NOON), ..found }))
    }

    async fn list_notifications(
        &self,
        request: Request<ListNotificationsRequest>,
    ) -> Answer<ListNotificationsResponse> {
        let ListNotificationsRequest { state, entry, page_size, page_token } = request.into_inner();
        let mut found = fixtures::notifications();
        found.retain(|one| {
            (state.is_empty() || one.state == state) && (entry.is_empty() || one.entry == entry)
        });
        let (notifications, next_page_token) = page(found, page_size, &page_token)?;
        Ok(Response::new(ListNotificationsResponse { notifications, next_page_token }))
    }

    async fn retry_notifications(
        &self,
        request: Request<RetryNotificationsRequest>,
    ) -> Answer<RetryNotificationsResponse> {
        let id = request.into_inner().id;
        self.world.record(format!("RetryNotifications {id}"));
        let all = fixtures::notifications();
        if !id.is_empty() && all.iter().all(|one| one.id != id) {
            return Err(Status::not_found(format!("there is no notification {id}")));
        }
        Ok(Response::new(RetryNotificationsResponse { notifications: if id.is_empty() { 2 } else { 1 } }))
    }

    async fn test_notification(&self, request: Request<TestNotificationRequest>) -> Answer<Notification> {
        let entry = request.into_inner().entry;
        let found = fixtures::notifications().into_iter().find(|one| one.entry == entry);
        found.map(Response::new).ok_or_else(|| Status::not_found(format!("there is no entry {entry}")))
    }

    async fn test_extension(&self, _: Request<TestExtensionRequest>) -> Answer<TestExtensionResponse> {
        Err(Status::unimplemented("it has no extensions"))
    }

    async fn observe(&self, request: Request<ObserveRequest>) -> Answer<ObserveResponse> {
        let observations = request.into_inner().observations;
        let mut refused = self.world.refused_observations.lock();
        if !observations.is_empty() && *refused > 0 {
            *refused -= 1;
            return Err(Status::unavailable("it restarts"));
        }
        self.world.observed.lock().extend(observations);
        Ok(Response::new(ObserveResponse { verdicts: Vec::new(), state: Some(fixtures::shadow_state()) }))
    }

    async fn list_ghosts(&self, request: Request<ListGhostsRequest>) -> Answer<ListGhostsResponse> {
        let ListGhostsRequest { state, everybody: _, page_size, page_token } = request.into_inner();
        let mut found = self.world.ghosts.lock().clone();
        found.retain(|ghost| state.is_empty() || ghost.state == state);
        let (ghosts, next_page_token) = page(found, page_size.min(1), &page_token)?;
        Ok(Response::new(ListGhostsResponse { ghosts, next_page_token }))
    }

    async fn get_ghost(&self, request: Request<GetGhostRequest>) -> Answer<GetGhostResponse> {
        let source = Observation {
            id: "o1".into(),
            trigger: "test_failed".into(),
            finding: "2 tests failed".into(),
            occurred_unix_ms: fixtures::NOON - 61_000,
            ..Observation::default()
        };
        let passed =
            vec!["the same finding was not told of before".into(), "a piece of work had ended".into()];
        let sent = fixtures::shadow_log().pop();
        let ghost = Some(ghost(&request.into_inner().id)?);
        Ok(Response::new(GetGhostResponse { ghost, source: Some(source), passed, sent }))
    }

    async fn decide_ghost(&self, request: Request<DecideGhostRequest>) -> Answer<Ghost> {
        let DecideGhostRequest { id, decision, label, snooze_ms } = request.into_inner();
        self.world.record(format!("DecideGhost {id} {decision} {label} {snooze_ms}"));
        let found = ghost(&id)?;
        if found.state != "waiting" {
            return Err(Status::failed_precondition(format!("the ghost is {} already", found.state)));
        }
        let (state, session_id) = match decision.as_str() {
            "dismiss" => ("dismissed", ""),
            "snooze" => ("snoozed", ""),
            _ => ("approved", fixtures::SESSION),
        };
        let snoozed_until_unix_ms = (snooze_ms > 0).then_some(fixtures::NOON + snooze_ms);
        let (state, session_id) = (state.to_owned(), session_id.to_owned());
        Ok(Response::new(Ghost { state, session_id, snoozed_until_unix_ms, ..found }))
    }

    async fn pause_shadow(&self, request: Request<PauseShadowRequest>) -> Answer<ShadowState> {
        let PauseShadowRequest { paused, for_ms, repository } = request.into_inner();
        self.world.record(format!("PauseShadow {paused} {for_ms} {repository}"));
        let paused_until_unix_ms = (for_ms > 0).then_some(fixtures::NOON + for_ms);
        Ok(Response::new(ShadowState { paused, paused_until_unix_ms, ..fixtures::shadow_state() }))
    }

    async fn get_shadow_stats(&self, _: Request<GetShadowStatsRequest>) -> Answer<GetShadowStatsResponse> {
        Ok(Response::new(fixtures::shadow_stats()))
    }

    async fn list_shadow_log(&self, request: Request<ListShadowLogRequest>) -> Answer<ListShadowLogResponse> {
        let ListShadowLogRequest { everybody: _, page_size, page_token } = request.into_inner();
        let (entries, next_page_token) = page(fixtures::shadow_log(), page_size.min(1), &page_token)?;
        Ok(Response::new(ListShadowLogResponse { entries, next_page_token }))
    }

    type FollowGhostsStream = tokio_stream::Pending<Result<GhostEvent, Status>>;

    async fn follow_ghosts(&self, _: Request<FollowGhostsRequest>) -> Answer<Self::FollowGhostsStream> {
        Err(Status::unimplemented("the test agent watches nobody"))
    }

    type WatchBusStream = tokio_stream::Pending<Result<WatchBusResponse, Status>>;

    async fn watch_bus(&self, _: Request<WatchBusRequest>) -> Answer<Self::WatchBusStream> {
        Err(Status::unimplemented("the test agent has no event bus"))
    }
}
