//! Hooks around turns, with a real agent that is killed between all entries of its journal.

use talon_proto::agent::{AttachRequest, GetSessionRequest};
use tonic::Code;

use crate::support::{Agent, Client, TestDirectory, ask, done, kills};

const EXTENSIONS: &str = "
request_hooks: [{ action: hooks.look, may: [replace] }]
response_hooks: [{ action: hooks.polish, may: [replace] }]
";

/// Where the agent is killed: the last thing that it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillPoint {
    /// The message was stored, and its hook is asked.
    InRequestHook,
    /// The hook's verdict was stored, and a tool is called.
    InCall,
    /// The answer was stored, and its hook is asked.
    InResponseHook,
    /// The person has the answer.
    AfterTurn,
    /// Somewhere, as long after the question as this many milliseconds.
    Anywhere(u64),
}

impl KillPoint {
    fn of(kill: usize) -> Self {
        match kill % 5 {
            0 => Self::InRequestHook,
            1 => Self::InCall,
            2 => Self::InResponseHook,
            3 => Self::AfterTurn,
            // Up to where a turn without a call has ended, also on a slow machine.
            _ => Self::Anywhere(kill as u64 * 7 % 60),
        }
    }
}

/// Hooks that were asked.
fn hooks(agent: &Agent) -> Vec<String> {
    let calls = agent.plugins.requests().into_iter().filter(|call| call.plugin == "hooks");
    calls.map(|call| call.action).collect()
}

/// What was said by somebody in a session.
async fn said(client: &mut Client, session: &str, role: &str) -> Vec<String> {
    let request = GetSessionRequest { session_id: session.to_owned(), all: true, ..Default::default() };
    let messages = client.get_session(request).await.unwrap().into_inner().messages;
    let said = messages.into_iter().filter(|message| message.role == role).map(|message| message.content);
    said.filter(|text| !text.is_empty()).collect()
}

/// One turn, killed at a point and gone on with.
async fn killed_turn(place: &TestDirectory, kill: usize) {
    let point = KillPoint::of(kill);
    let (text, answered) = match point {
        KillPoint::InCall => (format!("slow {kill}"), "Nobody knows. (polished)"),
        _ => (format!("hello {kill}"), "Hello to you, too. (polished)"),
    };
    let mut agent = Agent::with_extensions(place, EXTENSIONS).await;
    let calls = match point {
        KillPoint::InRequestHook => {
            *agent.plugins.held.lock() = "look";
            1
        }
        KillPoint::InResponseHook => {
            *agent.plugins.held.lock() = "polish";
            2
        }
        _ => 2,
    };
    let mut client = agent.client("alice").await;
    let (session, stream) = ask(&mut client, "", &text).await;
    match point {
        KillPoint::AfterTurn => assert_eq!(done(stream).await.text, answered),
        KillPoint::Anywhere(millis) => tokio::time::sleep(std::time::Duration::from_millis(millis)).await,
        _ => agent.plugins.wait_for(calls).await,
    }
    if point == KillPoint::InRequestHook {
        // What a hook that takes long sees is written meanwhile.
        while said(&mut client, &session, "user").await.is_empty() {
            tokio::task::yield_now().await;
        }
    }
    agent.kill();
    let before = hooks(&agent);

    let agent = Agent::with_extensions(place, EXTENSIONS).await;
    let mut client = agent.client("alice").await;
    let stored = said(&mut client, &session, "user").await;
    match client.attach(AttachRequest { session_id: session.clone() }).await {
        Ok(attached) => {
            assert_eq!(
                stored,
                std::slice::from_ref(&text),
                "{point:?}: the message was stored before anything"
            );
            assert_eq!(done(attached.into_inner()).await.text, answered, "{point:?}");
        }
        // It had ended, or nothing of it was begun.
        Err(status) => {
            assert_eq!(status.code(), Code::NotFound);
            assert!(matches!(point, KillPoint::AfterTurn | KillPoint::Anywhere(_)), "{point:?}: {status}");
        }
    }
    let after = hooks(&agent);
    match point {
        KillPoint::InRequestHook => {
            assert_eq!((before.len(), &after[..]), (1, &["look".to_owned(), "polish".to_owned()][..]))
        }
        KillPoint::InCall => {
            assert_eq!((&before[..], &after[..]), (&["look".to_owned()][..], &["polish".to_owned()][..]))
        }
        KillPoint::InResponseHook => assert_eq!((before.len(), &after[..]), (2, &["polish".to_owned()][..])),
        KillPoint::AfterTurn => assert_eq!((before.len(), after.len()), (2, 0)),
        KillPoint::Anywhere(_) if before.iter().any(|hook| hook == "polish") => {
            assert!(!after.contains(&"look".to_owned()), "the verdict was stored: {before:?} {after:?}");
        }
        KillPoint::Anywhere(_) => assert!(after.len() <= 2, "{before:?} {after:?}"),
    }
    if stored.is_empty() {
        let asked = before.iter().all(|hook| hook == "look");
        assert!(asked && after.is_empty(), "no model is asked before the message is stored: {before:?}");
        return;
    }
    assert_eq!(said(&mut client, &session, "user").await, [text], "{point:?}");
    let answers = said(&mut client, &session, "assistant").await;
    assert_eq!(answers.last().map(String::as_str), Some(answered), "{point:?}: {answers:?}");
}

// Promises: EXT-89
#[tokio::test]
async fn killed_between_all_entries_a_turn_loses_nothing_and_repeats_no_hook_with_a_verdict() {
    let place = TestDirectory::new();
    for kill in 0..kills() {
        killed_turn(&place, kill).await;
    }
}
