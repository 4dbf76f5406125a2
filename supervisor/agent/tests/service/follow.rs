//! What happened in sessions, followed over restarts: each durable event once.

use std::collections::BTreeMap;

use talon_proto::agent::event::Kind;
use talon_proto::agent::{
    AskRequest, CancelRequest, CreateSessionRequest, Cursor, DecideRequest, DeleteSessionRequest, Event,
    FollowRequest, ListApprovalsRequest, UpdateSessionRequest,
};
use tonic::{Code, Streaming};

use crate::support::{Agent, Client, SETTINGS, TestDirectory, answer, ask, done, kills, question, refused};

type Events = Streaming<Event>;

async fn follow(client: &mut Client, cursors: &[(&str, u64)], live: bool) -> Events {
    let cursor = |(id, after): &(&str, u64)| Cursor { session_id: (*id).to_owned(), after: *after };
    let cursors = cursors.iter().map(cursor).collect();
    let request = FollowRequest { cursors, live, ..FollowRequest::default() };
    client.follow(request).await.unwrap().into_inner()
}

async fn follow_all(client: &mut Client) -> Events {
    let request = FollowRequest { all: true, ..FollowRequest::default() };
    client.follow(request).await.unwrap().into_inner()
}

async fn next(events: &mut Events) -> Event {
    events.message().await.unwrap().expect("it does not end")
}

/// Reads until an event of this kind comes; returns all of them.
async fn until(events: &mut Events, is_it: impl Fn(&Kind) -> bool) -> Vec<Event> {
    let mut read = Vec::new();
    loop {
        let event = next(events).await;
        let found = is_it(event.kind.as_ref().unwrap());
        read.push(event);
        if found {
            return read;
        }
    }
}

async fn until_caught_up(events: &mut Events) -> Vec<Event> {
    let mut read = until(events, |kind| matches!(kind, Kind::CaughtUp(_))).await;
    read.pop();
    read
}

fn durable(events: Vec<Event>) -> Vec<Event> {
    events.into_iter().filter(|event| event.sequence > 0).collect()
}

fn is_end(kind: &Kind) -> bool {
    matches!(kind, Kind::Done(_) | Kind::Error(_))
}

fn words(events: &[Event]) -> Vec<&'static str> {
    let word = |event: &Event| match event.kind.as_ref().unwrap() {
        Kind::SessionCreated(_) => "created",
        Kind::SessionUpdated(_) => "updated",
        Kind::SessionDeleted(_) => "deleted",
        Kind::Message(_) => "message",
        Kind::Answer(_) => "answer",
        Kind::ToolCall(_) => "call",
        Kind::ToolResult(_) => "result",
        Kind::Approval(_) => "approval",
        Kind::SubagentStart(_) => "subagent start",
        Kind::SubagentResult(_) => "subagent result",
        Kind::Done(_) => "done",
        Kind::Error(_) => "error",
        other => panic!("{other:?}"),
    };
    events.iter().map(word).collect()
}

async fn new_session(client: &mut Client) -> String {
    client.create_session(CreateSessionRequest::default()).await.unwrap().into_inner().id
}

fn named(session: &str, text: &str, client_id: &str) -> AskRequest {
    AskRequest { client_id: client_id.to_owned(), detached: true, ..question(session, text) }
}

// Promises: GW-60
#[tokio::test]
async fn a_turn_is_followed_from_its_message_to_its_end() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let mut all = follow_all(&mut client).await;
    assert!(until_caught_up(&mut all).await.is_empty());
    let (session, _) = answer(&mut client, "", "read a").await;
    let events = until(&mut all, is_end).await;
    assert_eq!(words(&events), ["created", "message", "call", "result", "answer", "done"]);
    let Some(Kind::Done(end)) = &events[5].kind else { panic!("{events:?}") };
    assert_eq!((end.provider.as_str(), end.model.as_str(), end.iteration), ("scripted", "large", 2));
    assert!(end.usage.as_ref().unwrap().input_tokens > 0 && end.tool_calls == 1, "{end:?}");
    // The same once more, and nothing after the last.
    let mut again = follow(&mut client, &[(&session, 0)], false).await;
    assert_eq!(until_caught_up(&mut again).await, events);
    let mut rest = follow(&mut client, &[(&session, events[2].sequence)], false).await;
    assert_eq!(until_caught_up(&mut rest).await, events[3..]);
    agent.plugins.answers.add_permits(1);
    answer(&mut client, "", "delegate").await;
    let events = until(&mut all, is_end).await;
    assert_eq!(
        words(&events),
        ["created", "message", "call", "subagent start", "subagent result", "result", "answer", "done"]
    );
}

// Promises: GW-62
#[tokio::test]
async fn killed_again_and_again_each_durable_event_comes_once() {
    let place = TestDirectory::new();
    let (mut session, mut seen): (String, Vec<Event>) = (String::new(), Vec::new());
    let mut asked: Option<String> = None;
    for round in 0..=kills() {
        let mut agent = Agent::at(&place).await;
        let mut client = agent.client("alice").await;
        if session.is_empty() {
            session = new_session(&mut client).await;
        }
        let after = seen.last().map_or(0, |event| event.sequence);
        let mut events = follow(&mut client, &[(&session, after)], true).await;
        // What was asked before the kill is one turn, however far it was.
        if let Some(before) = asked.take() {
            let stream = client.ask(named(&session, "read a", &before)).await.unwrap().into_inner();
            assert_eq!(done(stream).await.text, "It was read.");
        }
        if round == kills() {
            let mut whole = follow(&mut client, &[(&session, 0)], false).await;
            let whole = until_caught_up(&mut whole).await;
            let last = whole.last().unwrap().sequence;
            while seen.last().is_none_or(|event| event.sequence < last) {
                seen.extend(durable(vec![next(&mut events).await]));
            }
            assert_eq!(seen, whole);
            let mut turns: BTreeMap<u64, usize> = BTreeMap::new();
            for event in &seen {
                *turns.entry(event.turn).or_default() += usize::from(is_end(event.kind.as_ref().unwrap()));
            }
            assert_eq!(turns, (1..=kills() as u64).map(|turn| (turn, 1)).collect());
            return;
        }
        let name = format!("m{round}");
        let _stream = client.ask(named(&session, "read a", &name)).await.unwrap();
        // Somewhere in the middle of it.
        let mut of_this = 0;
        while of_this < round % 5 {
            let event = next(&mut events).await;
            let is_of_this = event.sequence > 0 && event.turn == round as u64 + 1;
            seen.extend(durable(vec![event]));
            of_this += usize::from(is_of_this);
        }
        agent.kill();
        asked = Some(name);
    }
}

// Promises: GW-63
#[tokio::test]
async fn an_attempt_is_told_whole_and_another_one_takes_its_place_after_a_kill() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let session = new_session(&mut client).await;
    let _asked = client.ask(named(&session, "hang", "m")).await.unwrap();
    let text_of = async |events: &mut Events| {
        let (mut text, mut attempts) = (String::new(), Vec::new());
        while text != "Once upon a time" {
            match next(events).await.kind.unwrap() {
                Kind::Discard(discard) => {
                    attempts.push(discard.attempt);
                    text.clear();
                }
                Kind::Piece(piece) => {
                    assert_eq!(piece.offset, text.len() as u64);
                    text.push_str(&piece.text);
                    attempts.push(piece.attempt);
                }
                _ => {}
            }
        }
        *attempts.last().unwrap()
    };
    // Who comes later gets it whole, and so does who was there.
    let mut first = follow(&mut client, &[(&session, 0)], true).await;
    let attempt = text_of(&mut first).await;
    let mut later = follow(&mut client, &[(&session, 0)], true).await;
    assert_eq!(text_of(&mut later).await, attempt);
    agent.kill();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    // The turn is detached, and goes on by itself.
    let mut events = follow(&mut client, &[(&session, 0)], true).await;
    assert!(text_of(&mut events).await > attempt);
    client.cancel(CancelRequest { session_id: session.clone() }).await.unwrap();
    let rest = until(&mut events, is_end).await;
    let Some(Kind::Error(end)) = &rest.last().unwrap().kind else { panic!("{rest:?}") };
    assert_eq!((end.reason.as_str(), end.partial.as_str()), ("cancelled", "Once upon a time"));
}

// Promises: GW-64
#[tokio::test]
async fn one_who_does_not_read_holds_up_nobody_and_misses_nothing() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let session = new_session(&mut client).await;
    let mut stalled = Vec::new();
    for _ in 0..8 {
        // On connections of their own, whose windows fill up.
        let mut other = agent.client("alice").await;
        stalled.push(follow(&mut other, &[(&session, 0)], true).await);
    }
    for _ in 0..30 {
        assert_eq!(answer(&mut client, &session, "read a").await.1.text, "It was read.");
    }
    let whole = until_caught_up(&mut follow(&mut client, &[(&session, 0)], false).await).await;
    let last = whole.last().unwrap().sequence;
    for events in &mut stalled {
        let mut read: Vec<Event> = Vec::new();
        while read.last().is_none_or(|event| event.sequence < last) {
            read.extend(durable(vec![next(events).await]));
        }
        assert_eq!(read, whole);
    }
}

// Promises: GW-65
#[tokio::test]
async fn the_same_name_is_the_same_turn_while_it_runs_afterwards_and_after_a_restart() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let session = new_session(&mut client).await;
    let first = client.ask(named(&session, "slow", "m1")).await.unwrap().into_inner();
    agent.plugins.wait_for(1).await;
    let second = client.ask(named(&session, "slow", "m1")).await.unwrap().into_inner();
    agent.plugins.answers.add_permits(1);
    assert_eq!(done(first).await.text, "It waited.");
    assert_eq!(done(second).await.text, "It waited.");
    let recorded = client.ask(named(&session, "slow", "m1")).await.unwrap().into_inner();
    assert_eq!(done(recorded).await.text, "It waited.");
    assert_eq!(agent.plugins.called(), ["slow.wait"]);
    // In another session it is another message.
    let other = new_session(&mut client).await;
    let elsewhere = client.ask(named(&other, "hello", "m1")).await.unwrap().into_inner();
    assert_eq!(done(elsewhere).await.text, "Hello to you, too.");
    // Without being detached as well, and over a kill.
    let once = AskRequest { detached: false, ..named(&session, "slow", "m2") };
    let _stream = client.ask(once.clone()).await.unwrap();
    agent.plugins.wait_for(2).await;
    agent.kill();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    for id in ["m1", "m2"] {
        let again =
            client.ask(AskRequest { client_id: id.to_owned(), ..once.clone() }).await.unwrap().into_inner();
        let expected = if id == "m1" { "It waited." } else { "Nobody knows." };
        assert_eq!(done(again).await.text, expected, "{id}");
    }
    assert!(agent.plugins.called().is_empty());
}

// Promises: GW-65
#[tokio::test]
async fn a_detached_turn_goes_on_without_anybody() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let mut all = follow_all(&mut client).await;
    let stream = client.ask(AskRequest { detached: true, ..question("", "slow") }).await.unwrap();
    agent.plugins.wait_for(1).await;
    drop(stream);
    agent.plugins.answers.add_permits(1);
    let events = durable(until(&mut all, is_end).await);
    assert!(matches!(events.last().unwrap().kind, Some(Kind::Done(_))), "{events:?}");
}

// Promises: GW-61
#[tokio::test]
async fn nobody_follows_what_is_somebody_elses() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let (mut alice, mut bob) = (agent.client("alice").await, agent.client("bob").await);
    let (theirs, _) = answer(&mut bob, "", "hello").await;
    let mut events = follow(&mut alice, &[(&theirs, 0), ("nonsense", 3)], true).await;
    let read = until_caught_up(&mut events).await;
    assert_eq!(words(&read), ["deleted", "deleted"]);
    let mut all = follow_all(&mut alice).await;
    answer(&mut bob, &theirs, "hello").await;
    let (mine, _) = answer(&mut alice, "", "hello").await;
    let read = durable(until(&mut all, is_end).await);
    assert!(read.iter().all(|event| event.session_id == mine), "{read:?}");
    let everybody = FollowRequest { all: true, everybody: true, ..FollowRequest::default() };
    assert_eq!(refused(alice.follow(everybody.clone()).await).code(), Code::PermissionDenied);
    let mut operator = agent.client_with("root", "operate", "program").await;
    let mut events = operator.follow(everybody).await.unwrap().into_inner();
    until_caught_up(&mut events).await;
    answer(&mut bob, &theirs, "hello").await;
    let read = durable(until(&mut events, is_end).await);
    assert_eq!(words(&read), ["message", "answer", "done"]);
    for (request, says) in [
        (FollowRequest { everybody: true, ..FollowRequest::default() }, "goes with all"),
        (
            FollowRequest {
                cursors: vec![Cursor { session_id: theirs.clone(), after: 0 }; 2],
                ..FollowRequest::default()
            },
            "two cursors",
        ),
        (FollowRequest { cursors: vec![Cursor::default(); 4097], ..FollowRequest::default() }, "4096"),
    ] {
        let status = refused(operator.follow(request).await);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(says), "{status}");
    }
}

// Promises: GW-60
#[tokio::test]
async fn approvals_changes_and_deletions_are_told_and_the_first_two_once() {
    let place = TestDirectory::new();
    let mut agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let session = new_session(&mut client).await;
    let change = UpdateSessionRequest {
        session_id: session.clone(),
        verbose: Some(true),
        metadata: [("topic".to_owned(), "x".to_owned())].into(),
        ..UpdateSessionRequest::default()
    };
    let changed = client.update_session(change).await.unwrap().into_inner();
    assert!(changed.verbose && changed.state == "created", "{changed:?}");
    let mut events = follow(&mut client, &[(&session, 0)], false).await;
    let _asked = client.ask(named(&session, "write b", "m")).await.unwrap();
    let before = until(&mut events, |kind| matches!(kind, Kind::Approval(_))).await;
    agent.kill();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let waiting = ListApprovalsRequest::default();
    let approval = client.list_approvals(waiting).await.unwrap().into_inner().approvals.remove(0);
    let decide = DecideRequest { id: approval.id.clone(), approve: true, ..DecideRequest::default() };
    let mut events = follow(&mut client, &[(&session, 0)], false).await;
    client.decide(decide).await.unwrap();
    let read = durable(until(&mut events, is_end).await);
    let expected =
        ["updated", "created", "message", "call", "approval", "approval", "result", "answer", "done"];
    assert_eq!(words(&read), expected);
    assert_eq!(durable(before)[..], read[..5]);
    let Some(Kind::ToolResult(result)) = &read[6].kind else { panic!("{read:?}") };
    assert_eq!((result.confirmation.as_str(), result.success), ("approved", true));
    let Some(Kind::SessionUpdated(updated)) = &read[0].kind else { panic!("{read:?}") };
    assert_eq!(updated.fields, ["verbose", "metadata.topic"]);
    client.delete_session(DeleteSessionRequest { session_id: session.clone() }).await.unwrap();
    assert_eq!(words(&[next(&mut events).await]), ["deleted"]);
}

// Promises: GW-66
#[tokio::test]
async fn a_message_to_a_busy_session_waits_interrupts_or_is_refused() {
    let place = TestDirectory::new();
    let agent = Agent::at(&place).await;
    let mut client = agent.client("alice").await;
    let session = new_session(&mut client).await;
    let busy = |text: &str, busy: &str| AskRequest { busy: busy.to_owned(), ..question(&session, text) };
    let slow = client.ask(busy("slow", "")).await.unwrap().into_inner();
    agent.plugins.wait_for(1).await;
    assert_eq!(refused(client.ask(busy("hello", "")).await).code(), Code::FailedPrecondition);
    assert_eq!(refused(client.ask(busy("hello", "later")).await).code(), Code::InvalidArgument);
    let queued = tokio::spawn({
        let (mut client, request) = (client.clone(), busy("hello", "queue"));
        async move { done(client.ask(request).await.unwrap().into_inner()).await.text }
    });
    agent.plugins.answers.add_permits(1);
    assert_eq!(done(slow).await.text, "It waited.");
    assert_eq!(queued.await.unwrap(), "Hello to you, too.");
    let (_, hanging) = ask(&mut client, &session, "hang").await;
    let interrupting = client.ask(busy("hello", "interrupt")).await.unwrap().into_inner();
    assert_eq!(done(interrupting).await.text, "Hello to you, too.");
    assert_eq!(crate::support::error(hanging).await.reason, "cancelled");
}

// Promises: GW-66
#[tokio::test]
async fn messages_that_wait_together_become_one_turn_if_that_is_wanted() {
    let place = TestDirectory::new();
    let settings = format!("{SETTINGS}  sessions: {{ busy: merge }}\n");
    let (agent, _) = Agent::with(&place, &settings).await;
    let mut client = agent.client("alice").await;
    let session = new_session(&mut client).await;
    let slow = client.ask(named(&session, "slow", "m0")).await.unwrap().into_inner();
    agent.plugins.wait_for(1).await;
    let mut waiting = Vec::new();
    for name in ["m1", "m2"] {
        let (mut client, request) = (agent.client("alice").await, named(&session, "hello", name));
        waiting.push(tokio::spawn(async move {
            done(client.ask(request).await.unwrap().into_inner()).await.text
        }));
    }
    agent.plugins.answers.add_permits(1);
    assert_eq!(done(slow).await.text, "It waited.");
    for one in waiting {
        assert_eq!(one.await.unwrap(), "Hello to you, too.");
    }
    // Each is known by its name, whether they came together in time or not.
    for name in ["m1", "m2"] {
        let again = client.ask(named(&session, "hello", name)).await.unwrap().into_inner();
        assert_eq!(done(again).await.text, "Hello to you, too.");
    }
}

// Promises: GW-67
#[tokio::test]
async fn a_sender_has_one_main_session_on_all_channels_that_are_linked() {
    let place = TestDirectory::new();
    let settings = format!("{SETTINGS}  identities: {{ alice: ['gw:telegram/1'] }}\n");
    let (agent, _) = Agent::with(&place, &settings).await;
    let main = |text: &str| AskRequest { main_session: true, ..question("", text) };
    let session_of = async |sender: &str| {
        let mut client = agent.client(sender).await;
        let mut stream = client.ask(main("hello")).await.unwrap().into_inner();
        let first = crate::support::next(&mut stream).await.unwrap();
        let talon_proto::agent::chunk::Kind::Started(started) = first else { panic!("{first:?}") };
        done(stream).await;
        started.session_id
    };
    let alice = session_of("alice").await;
    assert_eq!(session_of("gw:telegram/1").await, alice);
    assert_eq!(session_of("alice").await, alice);
    let eve = session_of("gw:telegram/2").await;
    assert_ne!(eve, alice);
    let mut client = agent.client("gw:telegram/1").await;
    let name = AskRequest { client_id: "m".to_owned(), ..question("", "hello") };
    assert!(refused(client.ask(name).await).message().contains("main_session"));
    client.delete_session(DeleteSessionRequest { session_id: alice.clone() }).await.unwrap();
    assert_ne!(session_of("alice").await, alice);
}
