//! What is changed is told to the supervisor, for its audit log, before it is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    AskRequest, AttachRequest, CancelRequest, CompactSessionRequest, CompleteRequest, CreateSessionRequest,
    DecideGhostRequest, DecideJobProposalRequest, DecideRequest, DeleteSessionRequest, EmbedRequest,
    FollowGhostsRequest, FollowRequest, ForgetMemoriesRequest, ForgetSenderRequest, GetCostsRequest,
    GetGhostRequest, GetLoopRequest, GetMemoryRequest, GetMetricsRequest, GetSessionRequest,
    GetShadowStatsRequest, GetStatusRequest, ListApprovalRulesRequest, ListApprovalsRequest,
    ListCostsRequest, ListGhostsRequest, ListJobsRequest, ListMemoriesRequest, ListModelsRequest,
    ListNotificationsRequest, ListOccurrencesRequest, ListSessionsRequest, ListShadowLogRequest,
    ListToolsRequest, ObserveRequest, Operation, PauseJobRequest, PauseShadowRequest, PlanStep,
    ResumeSessionRequest, RetryNotificationsRequest, RevokeApprovalRuleRequest, RunJobRequest,
    SetPlanRequest, TestExtensionRequest, TestNotificationRequest, UndoTurnsRequest, UpdateSessionRequest,
    WatchBusRequest, forget_memories_request,
};
use tokio::task::JoinSet;
use tonic::Code;

use crate::delegation::asked;
use crate::support::{Agent, TestDirectory, answer, ask, done, until};

/// The requests of the service, each as its default.
macro_rules! requests {
    ($client:ident, $seen:ident, $each:expr, $($rpc:literal $method:ident($request:ident) $more:expr;)*) => {
        $(
            let answer = $client.$method($request::default()).await.map(drop);
            $seen.push($rpc);
            $each($rpc, answer, $more).await;
        )*
    };
}

/// What `agent.proto` has.
fn rpcs() -> BTreeSet<&'static str> {
    let proto = include_str!("../../../../proto/talon/agent/v1/agent.proto");
    let lines = proto.lines().filter_map(|line| line.trim().strip_prefix("rpc "));
    lines.filter_map(|line| line.split('(').next()).collect()
}

fn told(operation: &Operation) -> (&str, &str, &str) {
    (&operation.verb, &operation.outcome, &operation.subject)
}

// Promises: AUDIT-19
#[tokio::test]
async fn each_request_that_changes_something_is_recorded_and_no_other() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let mut seen = Vec::new();
    // Nothing of these is recorded: the first operation is that of the first change after them.
    let read = async |_rpc: &str, _answer: Result<(), tonic::Status>, (): ()| {};
    requests!(client, seen, read,
        "Ask" ask(AskRequest) ();
        "Complete" complete(CompleteRequest) ();
        "Embed" embed(EmbedRequest) ();
        "Attach" attach(AttachRequest) ();
        "Follow" follow(FollowRequest) ();
        "WatchBus" watch_bus(WatchBusRequest) ();
        "GetLoop" get_loop(GetLoopRequest) ();
        "ListSessions" list_sessions(ListSessionsRequest) ();
        "GetSession" get_session(GetSessionRequest) ();
        "ListApprovals" list_approvals(ListApprovalsRequest) ();
        "ListApprovalRules" list_approval_rules(ListApprovalRulesRequest) ();
        "ListMemories" list_memories(ListMemoriesRequest) ();
        "GetMemory" get_memory(GetMemoryRequest) ();
        "ListJobs" list_jobs(ListJobsRequest) ();
        "ListOccurrences" list_occurrences(ListOccurrencesRequest) ();
        "ListNotifications" list_notifications(ListNotificationsRequest) ();
        "Observe" observe(ObserveRequest) ();
        "ListGhosts" list_ghosts(ListGhostsRequest) ();
        "GetGhost" get_ghost(GetGhostRequest) ();
        "FollowGhosts" follow_ghosts(FollowGhostsRequest) ();
        "GetShadowStats" get_shadow_stats(GetShadowStatsRequest) ();
        "ListShadowLog" list_shadow_log(ListShadowLogRequest) ();
        "ListModels" list_models(ListModelsRequest) ();
        "ListTools" list_tools(ListToolsRequest) ();
        "GetCosts" get_costs(GetCostsRequest) ();
        "ListCosts" list_costs(ListCostsRequest) ();
        "GetStatus" get_status(GetStatusRequest) ();
        "GetMetrics" get_metrics(GetMetricsRequest) ();
    );
    let agent = tokio::sync::Mutex::new(&mut agent);
    let changed = async |rpc: &str, answer: Result<(), tonic::Status>, verb: &str| {
        let operation = agent.lock().await.operation().await.unwrap();
        let outcome = match answer {
            Ok(()) => "done",
            Err(status) if status.code() == Code::PermissionDenied => "denied",
            Err(_) => "failed",
        };
        assert_eq!((&*operation.verb, &*operation.outcome), (verb, outcome), "{rpc}: {operation:?}");
        assert_eq!(operation.problem.is_empty(), outcome == "done", "{rpc}: {operation:?}");
        let by = operation.client.unwrap();
        assert_eq!((by.uid, &*by.role, &*by.origin, &*by.subject), (1000, "call", "person", ""), "{rpc}");
    };
    requests!(client, seen, changed,
        "Cancel" cancel(CancelRequest) "cancel_turn";
        "CreateSession" create_session(CreateSessionRequest) "create_session";
        "UpdateSession" update_session(UpdateSessionRequest) "update_session";
        "ResumeSession" resume_session(ResumeSessionRequest) "resume_session";
        "DeleteSession" delete_session(DeleteSessionRequest) "delete_session";
        "CompactSession" compact_session(CompactSessionRequest) "compact_session";
        "UndoTurns" undo_turns(UndoTurnsRequest) "undo_turns";
        "SetPlan" set_plan(SetPlanRequest) "set_plan";
        "Decide" decide(DecideRequest) "deny_approval";
        "RevokeApprovalRule" revoke_approval_rule(RevokeApprovalRuleRequest) "revoke_approval_rule";
        "ForgetMemories" forget_memories(ForgetMemoriesRequest) "forget_memories";
        "ForgetSender" forget_sender(ForgetSenderRequest) "forget_sender";
        "RunJob" run_job(RunJobRequest) "run_job";
        "PauseJob" pause_job(PauseJobRequest) "resume_job";
        "DecideJobProposal" decide_job_proposal(DecideJobProposalRequest) "reject_job";
        "RetryNotifications" retry_notifications(RetryNotificationsRequest) "retry_notifications";
        "TestNotification" test_notification(TestNotificationRequest) "test_notification";
        "TestExtension" test_extension(TestExtensionRequest) "test_extension";
        "DecideGhost" decide_ghost(DecideGhostRequest) "decide_ghost";
        "PauseShadow" pause_shadow(PauseShadowRequest) "resume_shadow";
    );
    assert_eq!(
        seen.iter().copied().collect::<BTreeSet<_>>(),
        rpcs(),
        "each request of the service is one of them"
    );
}

// Promises: AUDIT-19, AUDIT-22
#[tokio::test]
async fn a_record_has_ids_and_owners_and_nothing_that_was_said() {
    const SECRET: &str = "xyzzy";
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut alice = agent.client("alice").await;
    let mut ada = agent.client_with("ada", "operate", "person").await;
    let metadata = BTreeMap::from([(SECRET.to_owned(), SECRET.to_owned())]);
    let create = CreateSessionRequest { metadata: metadata.clone(), ..CreateSessionRequest::default() };
    let id = alice.create_session(create).await.unwrap().into_inner().id;
    let mut all = vec![agent.operation().await.unwrap()];
    assert_eq!(told(&all[0]), ("create_session", "done", &*id));
    answer(&mut alice, &id, &format!("hello {SECRET}")).await;

    // Somebody else's: whose it is stands there.
    let verbose = Some(true);
    let update =
        UpdateSessionRequest { session_id: id.clone(), verbose, metadata, ..UpdateSessionRequest::default() };
    ada.update_session(update).await.unwrap();
    let steps = vec![PlanStep { text: SECRET.to_owned(), ..PlanStep::default() }];
    ada.set_plan(SetPlanRequest { session_id: id.clone(), steps, revision: 0 }).await.unwrap();
    let unknown = UpdateSessionRequest {
        session_id: id.clone(),
        model: Some(SECRET.to_owned()),
        ..UpdateSessionRequest::default()
    };
    ada.update_session(unknown).await.unwrap_err();
    for (verb, outcome, subject) in [
        ("update_session", "done", format!("{id} metadata,verbose of alice")),
        ("set_plan", "done", format!("{id} of alice revision 1")),
        ("update_session", "failed", format!("{id} model of alice")),
    ] {
        all.push(agent.operation().await.unwrap());
        assert_eq!(told(&all[all.len() - 1]), (verb, outcome, &*subject));
    }

    // A decision, and who tries one without being allowed to.
    let (_, mut stream) = ask(&mut alice, "", "write b").await;
    let Kind::Approval(approval) = until(&mut stream, |kind| matches!(kind, Kind::Approval(_))).await else {
        unreachable!("it was looked for");
    };
    let deny =
        DecideRequest { id: approval.id.clone(), reason: SECRET.to_owned(), ..DecideRequest::default() };
    let mut program = agent.client_with("alice", "call", "program").await;
    program.decide(deny.clone()).await.unwrap_err();
    ada.decide(deny).await.unwrap();
    assert_eq!(done(stream).await.text, "It was not written.");
    for (outcome, subject) in
        [("denied", approval.id.clone()), ("done", format!("{} files.write of alice", approval.id))]
    {
        all.push(agent.operation().await.unwrap());
        assert_eq!(told(&all[all.len() - 1]), ("deny_approval", outcome, &*subject));
    }

    // What a client says instead of an id or a name may be anything, and so may a tag.
    let wrong = || SECRET.to_owned();
    ada.delete_session(DeleteSessionRequest { session_id: wrong() }).await.unwrap_err();
    ada.run_job(RunJobRequest { job: wrong() }).await.unwrap_err();
    let kind = Some(forget_memories_request::Kind::Tag(wrong()));
    ada.forget_memories(ForgetMemoriesRequest { kind }).await.unwrap();
    alice.forget_sender(ForgetSenderRequest { sender: wrong() }).await.unwrap_err();
    for (verb, outcome, subject) in [
        ("delete_session", "failed", "(no id)"),
        ("run_job", "failed", "(no id)"),
        ("forget_memories", "done", "by tag memories 0"),
        ("forget_sender", "denied", "(no id)"),
    ] {
        all.push(agent.operation().await.unwrap());
        assert_eq!(told(&all[all.len() - 1]), (verb, outcome, subject));
    }

    answer(&mut alice, "", "remember").await;
    let kind = Some(forget_memories_request::Kind::NotUsedSinceUnixMs(1 << 50));
    ada.forget_memories(ForgetMemoriesRequest { kind }).await.unwrap();
    ada.forget_sender(ForgetSenderRequest { sender: "alice".to_owned() }).await.unwrap();
    for (verb, subject) in [
        ("forget_memories", format!("not_used_since_unix_ms {} memories 1", 1_u64 << 50)),
        ("forget_sender", "alice sessions 3 memories 0".to_owned()),
    ] {
        all.push(agent.operation().await.unwrap());
        assert_eq!(told(&all[all.len() - 1]), (verb, "done", &*subject));
    }
    assert!(all.iter().all(|operation| !format!("{operation:?}").contains(SECRET)), "{all:?}");
}

// Promises: AUDIT-23
#[tokio::test]
async fn what_is_done_for_others_is_recorded_for_whom_and_nobody_fills_the_log() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut gateway = agent.gateway("operate").await;
    let create = || asked(CreateSessionRequest::default(), "gw:telegram/1", "call");
    // Who does not say for whom is nobody.
    let mut bare = create();
    bare.metadata_mut().remove("talon-subject");
    assert_eq!(gateway.create_session(bare).await.unwrap_err().code(), Code::Unauthenticated);
    let id = gateway.create_session(create()).await.unwrap().into_inner().id;
    let delete = || DeleteSessionRequest { session_id: id.clone() };
    let other = gateway.delete_session(asked(delete(), "gw:telegram/2", "call")).await.unwrap_err();
    assert_eq!(other.code(), Code::NotFound, "{other:?}");
    gateway.delete_session(asked(delete(), "gw:slack/3", "operate")).await.unwrap();
    for (subject, role, (verb, outcome, what)) in [
        ("gw:telegram/1", "call", ("create_session", "done", id.clone())),
        // It does not learn whose it is, and neither does its record say so.
        ("gw:telegram/2", "call", ("delete_session", "failed", id.clone())),
        ("gw:slack/3", "operate", ("delete_session", "done", format!("{id} of gw:telegram/1"))),
    ] {
        let operation = agent.operation().await.unwrap();
        let by = operation.client.clone().unwrap();
        assert_eq!((&*by.subject, &*by.role, by.uid), (subject, role, 1000));
        assert_eq!(told(&operation), (verb, outcome, &*what));
    }
}

// Promises: AUDIT-20
#[tokio::test]
async fn what_was_answered_was_told_to_the_supervisor_though_the_agent_is_killed() {
    const SESSIONS: usize = 60;
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let client = agent.client("alice").await;
    let mut ids = Vec::new();
    for _ in 0..SESSIONS {
        let created = client.clone().create_session(CreateSessionRequest::default()).await.unwrap();
        ids.push(created.into_inner().id);
    }
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    let mut deletions = JoinSet::new();
    for id in ids {
        let (mut client, answered) = (client.clone(), Arc::clone(&answered));
        deletions.spawn(async move {
            if client.delete_session(DeleteSessionRequest { session_id: id.clone() }).await.is_ok() {
                answered.lock().insert(id);
            }
        });
    }
    // Killed in the middle of them.
    while answered.lock().len() < SESSIONS / 4 {
        tokio::task::yield_now().await;
    }
    agent.kill();
    while deletions.join_next().await.is_some() {}
    let mut recorded = BTreeSet::new();
    while let Some(operation) = agent.operation().await {
        if told(&operation) == ("delete_session", "done", &*operation.subject) {
            recorded.insert(operation.subject);
        }
    }
    let answered = answered.lock();
    assert!(answered.is_subset(&recorded), "{answered:?} {recorded:?}");
}
