//! Calls that wait for a person, also over a restart of the agent.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    Approval, AttachRequest, DecideRequest, GetSessionRequest, GetStatusRequest, ListApprovalsRequest,
};
use tonic::Code;

use crate::support::{
    Agent, Client, TestDirectory, answer, ask, done, error, next, question, refused, until,
};

async fn pending(client: &mut Client) -> Vec<Approval> {
    client.list_approvals(ListApprovalsRequest::default()).await.unwrap().into_inner().approvals
}

fn decision(approval: &Approval, approve: bool) -> DecideRequest {
    DecideRequest { id: approval.id.clone(), approve, digest: approval.digest.clone(), reason: String::new() }
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
