//! After a kill in the middle of a turn, nothing acknowledged is lost and nothing is done twice.

use talon_proto::agent::{
    AttachRequest, CancelRequest, GetSessionRequest, ListSessionsRequest, Message, ResumeSessionRequest,
};
use tonic::Code;

use crate::support::{Agent, Client, TestDirectory, answer, ask, done, refused};

async fn session_of(client: &mut Client, session: &str) -> (String, Vec<Message>) {
    let request = GetSessionRequest { session_id: session.to_owned(), all: true, ..Default::default() };
    let got = client.get_session(request).await.unwrap().into_inner();
    (got.session.unwrap().turn, got.messages)
}

fn says(messages: &[Message], role: &str, text: &str) -> bool {
    messages.iter().any(|message| message.role == role && message.content.contains(text))
}

/// An agent that was killed while a tool ran, after one turn that was answered.
async fn killed(place: &TestDirectory) -> String {
    let mut agent = Agent::at(place).await;
    let mut client = agent.client("alice").await;
    let (session, _) = answer(&mut client, "", "hello").await;
    let (_, _stream) = ask(&mut client, &session, "slow").await;
    agent.plugins.wait_for(1).await;
    agent.kill();
    session
}

// Promises: AGENT-27
#[tokio::test]
async fn a_killed_turn_is_continued_by_attach_and_its_call_is_not_made_again() {
    let place = TestDirectory::new();
    let session = killed(&place).await;
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (turn, messages) = session_of(&mut client, &session).await;
    assert_eq!(turn, "interrupted");
    assert!(
        says(&messages, "assistant", "Hello to you, too.") && says(&messages, "user", "slow"),
        "{messages:?}"
    );
    let attached = client.attach(AttachRequest { session_id: session.clone() }).await.unwrap().into_inner();
    assert_eq!(done(attached).await.text, "Nobody knows.");
    assert!(agent.plugins.called().is_empty(), "what the call did is not known, so it is not made again");
    assert_eq!(session_of(&mut client, &session).await.0, "idle");
}

// Promises: AGENT-28
#[tokio::test]
async fn a_killed_turn_is_continued_by_resume() {
    let place = TestDirectory::new();
    let session = killed(&place).await;
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let resume = ResumeSessionRequest { session_id: session.clone() };
    let resumed = client.resume_session(resume.clone()).await.unwrap().into_inner();
    assert!(resumed.continues, "{resumed:?}");
    match client.attach(AttachRequest { session_id: session.clone() }).await {
        Ok(attached) => assert_eq!(done(attached.into_inner()).await.text, "Nobody knows."),
        // The turn may have ended by then.
        Err(status) => assert_eq!(status.code(), Code::NotFound),
    }
    let resumed = client.resume_session(resume).await.unwrap().into_inner();
    assert!(!resumed.continues, "there is nothing to go on with any more");
    assert!(says(&session_of(&mut client, &session).await.1, "assistant", "Nobody knows."));
}

// Promises: AGENT-28
#[tokio::test]
async fn a_killed_turn_gives_way_to_the_next_question() {
    let place = TestDirectory::new();
    let session = killed(&place).await;
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (_, answered) = answer(&mut client, &session, "hello again").await;
    assert_eq!(answered.text, "Hello to you, too.");
    let (turn, messages) = session_of(&mut client, &session).await;
    assert_eq!(turn, "idle");
    assert!(says(&messages, "user", "slow") && says(&messages, "system", "interrupted"), "{messages:?}");
    let status = refused(client.attach(AttachRequest { session_id: session }).await);
    assert_eq!(status.code(), Code::NotFound);
}

// Promises: AGENT-27
#[tokio::test]
async fn killed_again_and_again_it_still_ends() {
    let place = TestDirectory::new();
    let session = killed(&place).await;
    for _ in 0..3 {
        let mut agent = Agent::at(&place).await;
        let mut client = agent.client("alice").await;
        let _goes_on = client.attach(AttachRequest { session_id: session.clone() }).await;
        agent.kill();
    }
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    if let Ok(attached) = client.attach(AttachRequest { session_id: session.clone() }).await {
        done(attached.into_inner()).await;
    }
    let (turn, messages) = session_of(&mut client, &session).await;
    assert_eq!(turn, "idle");
    let asked = messages.iter().filter(|message| message.role == "user" && message.content == "slow");
    assert_eq!(asked.count(), 1);
    assert!(agent.plugins.called().is_empty());
}

// Promises: AGENT-147
#[tokio::test]
async fn a_sub_agent_goes_on_where_it_was_killed_and_the_turn_ends_with_its_answer() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let (session, _stream) = ask(&mut client, "", "delegate").await;
    // The sub-agent has read a file, and its second call runs.
    agent.plugins.wait_for(2).await;
    assert_eq!(agent.plugins.called(), ["files.read", "slow.wait"]);
    let everybodys = async |client: &mut Client| {
        let request = ListSessionsRequest { all: true, ..ListSessionsRequest::default() };
        client.list_sessions(request).await.unwrap().into_inner().sessions.len()
    };
    let mut operator = agent.client_with("root", "operate", "person").await;
    assert_eq!(everybodys(&mut operator).await, 1, "the task is a part of the turn");
    agent.kill();
    // Twice: it goes on wherever it was.
    for _ in 0..2 {
        let mut agent = Agent::at(&place).await;
        let mut client = agent.client("alice").await;
        let _goes_on = client.attach(AttachRequest { session_id: session.clone() }).await.unwrap();
        agent.kill();
    }
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    match client.attach(AttachRequest { session_id: session.clone() }).await {
        Ok(attached) => assert_eq!(done(attached.into_inner()).await.text, "Gold was found."),
        // It may have ended before it was killed.
        Err(status) => assert_eq!(status.code(), Code::NotFound),
    }
    assert!(agent.plugins.called().is_empty(), "what it had read is not read again");
    let (turn, messages) = session_of(&mut client, &session).await;
    assert_eq!(turn, "idle");
    assert!(says(&messages, "assistant", "Gold was found."), "{messages:?}");
    assert!(!says(&messages, "tool", "not known"), "{messages:?}");
}

// Promises: AGENT-28
#[tokio::test]
async fn a_killed_turn_can_be_cancelled_instead() {
    let place = TestDirectory::new();
    let session = killed(&place).await;
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let cancel = CancelRequest { session_id: session.clone() };
    assert!(client.cancel(cancel).await.unwrap().into_inner().cancelled);
    assert_eq!(session_of(&mut client, &session).await.0, "idle");
    assert_eq!(answer(&mut client, &session, "hello").await.1.text, "Hello to you, too.");
    assert!(agent.plugins.called().is_empty());
}
