//! Calls that wait for a person, also over a restart of the agent.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    Approval, AttachRequest, DecideRequest, ForgetSenderRequest, GetSessionRequest, GetStatusRequest,
    ListApprovalRulesRequest, ListApprovalsRequest, ListMemoriesRequest, RevokeApprovalRuleRequest,
};
use tonic::Code;

use crate::support::{
    Agent, Client, SETTINGS, TestDirectory, answer, ask, done, error, next, question, refused, until,
};

async fn pending(client: &mut Client) -> Vec<Approval> {
    client.list_approvals(ListApprovalsRequest::default()).await.unwrap().into_inner().approvals
}

fn decision(approval: &Approval, approve: bool) -> DecideRequest {
    DecideRequest {
        id: approval.id.clone(),
        approve,
        digest: approval.digest.clone(),
        ..DecideRequest::default()
    }
}

/// A parked call, as the client sees it.
async fn parked(client: &mut Client) -> (String, tonic::Streaming<talon_proto::agent::Chunk>, Approval) {
    let (session, mut stream) = ask(client, "", "write b").await;
    match until(&mut stream, |kind| matches!(kind, Kind::Approval(_))).await {
        Kind::Approval(approval) => (session, stream, approval),
        other => panic!("{other:?}"),
    }
}

async fn turn_of(client: &mut Client, session: &str) -> String {
    let request = GetSessionRequest { session_id: session.to_owned(), ..GetSessionRequest::default() };
    client.get_session(request).await.unwrap().into_inner().session.unwrap().turn
}

#[tokio::test]
async fn a_call_waits_until_a_person_says_yes() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, stream, approval) = parked(&mut client).await;
    assert_eq!((approval.plugin.as_str(), approval.action.as_str()), ("files", "write"));
    assert_eq!((approval.args["path"].as_str(), approval.state.as_str()), ("b", "pending"));
    assert_eq!(turn_of(&mut client, &session).await, "waiting");
    assert!(agent.plugins.called().is_empty());
    assert_eq!(client.get_status(GetStatusRequest {}).await.unwrap().into_inner().approvals_pending, 1);
    let decided = client.decide(decision(&approval, true)).await.unwrap().into_inner();
    assert_eq!((decided.state.as_str(), decided.decided_by.as_str()), ("approved", "alice"));
    assert_eq!(done(stream).await.text, "It was written.");
    assert_eq!(agent.plugins.called(), ["files.write"]);
    assert!(pending(&mut client).await.is_empty());
}

#[tokio::test]
async fn a_denied_call_is_not_made_and_the_model_is_told() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (_, stream, approval) = parked(&mut client).await;
    let other = DecideRequest { digest: "0".repeat(64), ..decision(&approval, true) };
    assert_eq!(refused(client.decide(other).await).code(), Code::FailedPrecondition);
    client.decide(decision(&approval, false)).await.unwrap();
    assert_eq!(done(stream).await.text, "It was not written.");
    assert!(agent.plugins.called().is_empty());
    assert_eq!(refused(client.decide(decision(&approval, true)).await).code(), Code::FailedPrecondition);
}

// Promises: AGENT-35
#[tokio::test]
async fn only_people_decide_and_only_on_what_is_theirs() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (_, stream, approval) = parked(&mut client).await;
    for origin in ["model", "program"] {
        let mut client = agent.client_with("alice", "admin", origin).await;
        assert_eq!(refused(client.decide(decision(&approval, true)).await).code(), Code::PermissionDenied);
    }
    let mut bob = agent.client("bob").await;
    assert!(pending(&mut bob).await.is_empty());
    assert_eq!(refused(bob.decide(decision(&approval, true)).await).code(), Code::NotFound);
    let mut operator = agent.client_with("root", "operate", "person").await;
    let everybody = ListApprovalsRequest { everybody: true, ..ListApprovalsRequest::default() };
    assert_eq!(operator.list_approvals(everybody).await.unwrap().into_inner().approvals.len(), 1);
    operator.decide(decision(&approval, true)).await.unwrap();
    assert_eq!(done(stream).await.text, "It was written.");
}

#[tokio::test]
async fn a_turn_that_waits_goes_on_without_its_asker() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, stream, approval) = parked(&mut client).await;
    drop(stream);
    let mut attached = client.attach(AttachRequest { session_id: session }).await.unwrap().into_inner();
    assert!(matches!(next(&mut attached).await, Some(Kind::Loop(_))));
    assert!(matches!(next(&mut attached).await, Some(Kind::Approval(shown)) if shown.id == approval.id));
    client.decide(decision(&approval, true)).await.unwrap();
    assert_eq!(done(attached).await.text, "It was written.");
}

// Promises: AGENT-32
#[tokio::test]
async fn a_parked_call_survives_a_killed_agent_and_runs_once() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, _stream, approval) = parked(&mut client).await;
    agent.kill();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let waiting = pending(&mut client).await;
    assert_eq!(waiting.iter().map(|one| &one.digest).collect::<Vec<_>>(), [&approval.digest]);
    // Its turn resumes without a request of the client, who only follows it.
    let attached = client.attach(AttachRequest { session_id: session.clone() }).await.unwrap().into_inner();
    client.decide(decision(&waiting[0], true)).await.unwrap();
    assert_eq!(done(attached).await.text, "It was written.");
    assert_eq!(agent.plugins.called(), ["files.write"]);
    assert_eq!(turn_of(&mut client, &session).await, "idle");
}

// Promises: AGENT-32
#[tokio::test]
async fn what_is_decided_is_not_lost_when_nobody_follows() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, _stream, _) = parked(&mut client).await;
    agent.kill();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let waiting = pending(&mut client).await;
    client.decide(decision(&waiting[0], true)).await.unwrap();
    agent.plugins.wait_for(1).await;
    let following = client.attach(AttachRequest { session_id: session.clone() }).await;
    if let Ok(following) = following {
        done(following.into_inner()).await;
    }
    assert_eq!(agent.plugins.called(), ["files.write"]);
}

// Promises: AGENT-34
#[tokio::test]
async fn a_cancelled_turn_takes_its_approvals_with_it() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, stream, approval) = parked(&mut client).await;
    let cancel = talon_proto::agent::CancelRequest { session_id: session.clone() };
    client.cancel(cancel).await.unwrap();
    assert_eq!(error(stream).await.reason, "cancelled");
    assert!(pending(&mut client).await.is_empty());
    assert_eq!(refused(client.decide(decision(&approval, true)).await).code(), Code::FailedPrecondition);
    answer(&mut client, &session, "hello").await;
    assert!(client.ask(question(&session, "hello")).await.is_ok());
}

// Promises: AGENT-84
#[tokio::test]
async fn rules_are_their_senders_are_shown_and_revoked_and_made_by_people_alone() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (_, stream, approval) = parked(&mut client).await;
    let wrong = DecideRequest { scope: "for ever".to_owned(), ..decision(&approval, true) };
    assert_eq!(refused(client.decide(wrong).await).code(), Code::InvalidArgument);
    let denial = DecideRequest { scope: "always".to_owned(), ..decision(&approval, false) };
    assert_eq!(refused(client.decide(denial).await).code(), Code::InvalidArgument);
    let patterns = [("path".to_owned(), "b*".to_owned())].into();
    let always = DecideRequest { scope: "always".to_owned(), patterns, ..decision(&approval, true) };
    let decided = client.decide(always).await.unwrap().into_inner();
    assert!(!decided.rule_id.is_empty());
    assert_eq!(done(stream).await.text, "It was written.");
    let rules = |everybody| ListApprovalRulesRequest { everybody };
    let mine = client.list_approval_rules(rules(false)).await.unwrap().into_inner().rules;
    assert_eq!((mine.len(), mine[0].patterns["path"].as_str(), mine[0].sender.as_str()), (1, "b*", "alice"));
    assert_eq!(refused(client.list_approval_rules(rules(true)).await).code(), Code::PermissionDenied);
    let mut bob = agent.client("bob").await;
    assert!(bob.list_approval_rules(rules(false)).await.unwrap().into_inner().rules.is_empty());
    let revoke = || RevokeApprovalRuleRequest { id: decided.rule_id.clone() };
    assert_eq!(refused(bob.revoke_approval_rule(revoke()).await).code(), Code::NotFound);
    // It asks no more, in another session too.
    let (_, stream) = ask(&mut client, "", "write b").await;
    assert_eq!(done(stream).await.text, "It was written.");
    assert!(pending(&mut client).await.is_empty());
    client.revoke_approval_rule(revoke()).await.unwrap();
    let (.., again) = parked(&mut client).await;
    assert_eq!(again.state, "pending");
}

// Promises: AGENT-86
#[tokio::test]
async fn a_sender_is_forgotten_with_sessions_approvals_and_rules_and_nobody_else_is() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (_, stream, approval) = parked(&mut client).await;
    let always = DecideRequest { scope: "always".to_owned(), ..decision(&approval, true) };
    client.decide(always).await.unwrap();
    done(stream).await;
    let mut bob = agent.client("bob").await;
    let (kept, stream) = ask(&mut bob, "", "hello").await;
    done(stream).await;
    let forget = |sender: &str| ForgetSenderRequest { sender: sender.to_owned() };
    assert_eq!(refused(bob.forget_sender(forget("alice")).await).code(), Code::PermissionDenied);
    assert_eq!(refused(client.forget_sender(forget("")).await).code(), Code::InvalidArgument);
    let gone = client.forget_sender(forget("alice")).await.unwrap().into_inner();
    assert_eq!((gone.sessions, gone.approvals, gone.rules), (1, 1, 1));
    assert_eq!(client.forget_sender(forget("alice")).await.unwrap().into_inner(), Default::default());
    let all = ListApprovalsRequest { all: true, ..ListApprovalsRequest::default() };
    assert!(client.list_approvals(all).await.unwrap().into_inner().approvals.is_empty());
    assert_eq!(turn_of(&mut bob, &kept).await, "idle");
}

// Promises: AGENT-150
#[tokio::test]
async fn a_memory_is_saved_when_a_person_says_so_where_the_operator_wants_that() {
    let place = TestDirectory::new();
    let rules = "rules: [{ tool: memory.save, ask: always }]";
    let settings = SETTINGS.replace("confirm: { default: destructive }", &format!("confirm: {{ {rules} }}"));
    assert_ne!(settings, SETTINGS);
    let (agent, _) = Agent::with(&place, &settings).await;
    let mut client = agent.client("alice").await;
    let memories = async |client: &mut Client| {
        client.list_memories(ListMemoriesRequest::default()).await.unwrap().into_inner().memories.len()
    };
    for (approve, kept) in [(false, 0), (true, 1)] {
        let (_, mut stream) = ask(&mut client, "", "remember that").await;
        let Kind::Approval(approval) = until(&mut stream, |kind| matches!(kind, Kind::Approval(_))).await
        else {
            panic!("it asks");
        };
        assert_eq!((approval.plugin.as_str(), approval.action.as_str()), ("memory", "save"));
        assert_eq!(memories(&mut client).await, 0);
        client.decide(decision(&approval, approve)).await.unwrap();
        done(stream).await;
        assert_eq!(memories(&mut client).await, kept);
    }
}
