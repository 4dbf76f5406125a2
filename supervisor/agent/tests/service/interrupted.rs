//! After a kill in the middle of a turn, nothing acknowledged is lost and nothing is done twice.

use talon_proto::agent::{AttachRequest, CancelRequest, GetSessionRequest, Message, ResumeSessionRequest};
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
