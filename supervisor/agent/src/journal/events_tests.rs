//! Events of a session's messages: each once, in order, and the same wherever one begins to read.

use proptest::prelude::*;
use talon_proto::agent::Approval;
use talon_store::{NewMessage, NewSession, PageRequest, Session, View};

use super::super::properties::turn;
use super::super::tests::{TestSession, asked, calls, ended, result, says};
use super::super::{Journal as _, JournalEntry, TurnOptions};
use super::*;

async fn session_of(place: &TestSession) -> (Session, Vec<Message>) {
    let session = place.sessions.get(place.id).await.unwrap().unwrap();
    let all = place.sessions.messages(place.id, View::All, &PageRequest::first(1000)).await.unwrap();
    assert!(all.next.is_none());
    (session, all.items)
}

fn translate(session: &Session, messages: &[Message]) -> Vec<Event> {
    let mut translator = EventTranslator::default();
    messages.iter().flat_map(|message| translator.events(session, message)).collect()
}

fn words(events: &[Event]) -> Vec<&'static str> {
    let word = |event: &Event| match event.kind.as_ref().unwrap() {
        Kind::SessionCreated(_) => "created",
        Kind::SessionResumed(_) => "resumed",
        Kind::SessionIdle(_) => "idle",
        Kind::SessionUpdated(_) => "updated",
        Kind::Message(_) => "message",
        Kind::Answer(_) => "answer",
        Kind::Thought(_) => "thought",
        Kind::ToolCall(_) => "call",
        Kind::ToolResult(_) => "result",
        Kind::Approval(_) => "approval",
        Kind::SubagentStart(_) => "subagent start",
        Kind::SubagentResult(_) => "subagent result",
        Kind::Notice(_) => "notice",
        Kind::Done(_) => "done",
        Kind::Error(_) => "error",
        Kind::TurnsUndone(_) => "undone",
        Kind::SessionCompacted(_) => "compacted",
        other => panic!("{other:?} is not durable"),
    };
    events.iter().map(word).collect()
}

fn approval(state: &str) -> NewMessage {
    let approval = Approval {
        id: "01A".to_owned(),
        state: state.to_owned(),
        call_id: "b".to_owned(),
        ..Approval::default()
    };
    SessionFact::approval(1, &approval).into_message()
}

// Promises: GW-60
#[tokio::test]
async fn a_turn_is_told_in_the_order_of_its_journal() {
    let place = TestSession::new().await;
    let journal = place.journal();
    let with = TurnOptions {
        client_id: "m1".to_owned(),
        channel: "telegram".to_owned(),
        sender_name: "Ada".to_owned(),
        ..TurnOptions::default()
    };
    journal.add(1, JournalEntry::Asked { text: "q".to_owned(), with: Box::new(with) }).await.unwrap();
    let JournalEntry::Answered { mut answer, .. } = calls(&["a", "b"]) else { unreachable!("it is one") };
    (answer.text, answer.thinking) = ("I look.".to_owned(), "hm".to_owned());
    let answered = JournalEntry::Answered { answer, micro_usd: 0, withheld: false };
    journal.add(1, answered).await.unwrap();
    journal.add(1, JournalEntry::CallStarted { place: 0 }).await.unwrap();
    place.sessions.note(place.id, vec![approval("pending")]).await.unwrap();
    journal.add(1, JournalEntry::CallFinished { place: 0, result: result("early") }).await.unwrap();
    place.sessions.note(place.id, vec![approval("approved")]).await.unwrap();
    place.sessions.note(place.id, vec![approval("approved")]).await.expect_err("it is told once");
    journal.add(1, JournalEntry::CallStarted { place: 1 }).await.unwrap();
    journal.add(1, JournalEntry::CallsFinished(vec![result("early"), result("late")])).await.unwrap();
    journal.add(1, says("answer")).await.unwrap();
    journal.add(1, ended()).await.unwrap();
    let (session, messages) = session_of(&place).await;
    let events = translate(&session, &messages);
    let expected = [
        "created", "message", "thought", "answer", "call", "call", "approval", "result", "approval",
        "result", "answer", "done",
    ];
    assert_eq!(words(&events), expected);
    let Some(Kind::Message(message)) = &events[1].kind else { panic!("{events:?}") };
    assert_eq!(
        (&*message.text, &*message.channel, &*message.sender_name, &*message.client_id),
        ("q", "telegram", "Ada", "m1")
    );
    let results = events.iter().filter_map(|event| match &event.kind {
        Some(Kind::ToolResult(result)) => Some((result.call_id.as_str(), result.confirmation.as_str())),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [("a", ""), ("b", "approved")]);
    assert!(events.windows(2).all(|pair| pair[0].sequence < pair[1].sequence), "{events:?}");
    assert!(events.iter().skip(1).all(|event| event.turn == 1));
    // Models see nothing of it.
    let (past, _) = place.journal().past().await.unwrap();
    assert_eq!(past.len(), 5);
}

// Promises: GW-60
#[tokio::test]
async fn a_session_is_created_idle_and_resumed_once_each() {
    let place = TestSession::new().await;
    let fact = |fact: SessionFact| vec![fact.into_message()];
    let updated = SessionFact::Updated { fields: vec!["model".to_owned()] };
    place.sessions.note(place.id, fact(updated)).await.unwrap();
    let journal = place.journal();
    for turn in 1..=3 {
        if turn == 3 {
            place.sessions.note(place.id, fact(SessionFact::Idle)).await.unwrap();
            place.sessions.note(place.id, fact(SessionFact::Resumed)).await.unwrap();
        }
        for entry in [asked("q"), says("a"), ended()] {
            journal.add(turn, entry).await.unwrap();
        }
        place.sessions.note(place.id, fact(SessionFact::Idle)).await.unwrap();
    }
    let (session, messages) = session_of(&place).await;
    let turn = ["message", "answer", "done", "idle"];
    let expected: Vec<&str> = ["updated", "created"]
        .into_iter()
        .chain(turn)
        .chain(["resumed"])
        .chain(turn)
        .chain(["idle", "resumed"])
        .chain(turn)
        .collect();
    assert_eq!(words(&translate(&session, &messages)), expected);
}

#[tokio::test]
async fn a_sub_agents_task_is_told_with_its_call() {
    let place = TestSession::new().await;
    let journal = place.journal();
    let JournalEntry::Answered { mut answer, .. } = calls(&["a"]) else { unreachable!("it is one") };
    answer.calls[0].name = SUBAGENT_TOOL.to_owned();
    let arguments = serde_json::json!({ "agent": "ResearchAgent", "task": "dig" });
    answer.calls[0].arguments =
        talon_llm::model::Arguments::Object(arguments.as_object().cloned().unwrap_or_default());
    let json =
        r#"{"agent":"ResearchAgent","result":{"summary":"gold"},"tokens_used":7,"cost":0.1,"duration_ms":9}"#;
    let answered = JournalEntry::Answered { answer, micro_usd: 0, withheld: false };
    for entry in [
        asked("q"),
        answered,
        JournalEntry::CallStarted { place: 0 },
        // After a restart it goes on.
        JournalEntry::CallStarted { place: 0 },
        JournalEntry::CallsFinished(vec![result(json)]),
        ended(),
    ] {
        journal.add(1, entry).await.unwrap();
    }
    let (session, messages) = session_of(&place).await;
    let events = translate(&session, &messages);
    assert_eq!(
        words(&events),
        ["created", "message", "call", "subagent start", "subagent result", "result", "done"]
    );
    let Some(Kind::SubagentResult(told)) = &events[4].kind else { panic!("{events:?}") };
    assert_eq!((told.agent.as_str(), told.tokens, told.duration_ms), ("ResearchAgent", 7, 9));
    assert_eq!(told.result, r#"{"summary":"gold"}"#);
}

/// What is told from a cursor on, by a translator that read only what it needs of what came before.
fn from_cursor(session: &Session, messages: &[Message], after: u64) -> Vec<Event> {
    let at = usize::try_from(after / EVENTS_PER_MESSAGE).unwrap().saturating_sub(1);
    let mut translator = EventTranslator::default();
    let mut from = at;
    while from > 0 && !translator.is_anchored() {
        from = from.saturating_sub(2);
        translator = EventTranslator::default();
        for message in &messages[from..at] {
            translator.events(session, message);
        }
    }
    let rest = messages[at..].iter().flat_map(|message| translator.events(session, message));
    rest.filter(|event| event.sequence > after).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    // Promises: GW-61
    #[test]
    fn from_each_sequence_on_the_same_follows(
        turns in proptest::collection::vec((turn(), any::<bool>(), any::<bool>()), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let place = TestSession::new().await;
            for (number, (entries, idle, cut)) in (1..).zip(&turns) {
                // Also turns that were interrupted.
                let kept = if *cut { entries.len().div_ceil(2) } else { entries.len() };
                for entry in &entries[..kept] {
                    place.journal().add(number, entry.clone()).await.expect("written");
                }
                if *idle {
                    place.sessions.note(place.id, vec![SessionFact::Idle.into_message()]).await.expect("noted");
                }
            }
            let (session, messages) = session_of(&place).await;
            let all = translate(&session, &messages);
            prop_assert!(all.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
            prop_assert_eq!(&from_cursor(&session, &messages, 0), &all);
            for (at, event) in all.iter().enumerate() {
                prop_assert_eq!(&from_cursor(&session, &messages, event.sequence), &all[at + 1..]);
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn an_imported_session_is_told_too() {
    let place = TestSession::new().await;
    let new = NewSession { sender: "ada".to_owned(), channel: "cli".to_owned(), ..NewSession::default() };
    let id = place.sessions.create(new).await.unwrap().id;
    let foreign = [
        NewMessage::text(Role::System, "be kind"),
        NewMessage::text(Role::User, "one"),
        NewMessage::text(Role::Assistant, "two"),
    ];
    place.sessions.append(id, talon_store::Expected::Any, foreign.to_vec()).await.unwrap();
    let session = place.sessions.get(id).await.unwrap().unwrap();
    let all = place.sessions.messages(id, View::All, &PageRequest::first(10)).await.unwrap().items;
    assert_eq!(words(&translate(&session, &all)), ["created", "message", "answer", "done"]);
}
