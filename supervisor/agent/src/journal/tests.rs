//! The journal on a store of SQLite.

use std::sync::Arc;

use serde_json::json;
use talon_llm::model::{
    Answer, Arguments, Finish, Image, ImageKind, Message, Thinking, Thoughts, ToolCall, Usage,
};
use talon_store::{
    Engine, Expected, NewMessage, NewSession, PageRequest, Role, SessionId, Sessions, Store, StoreOptions,
    View,
};
use tempfile::TempDir;

use super::*;
use crate::context::Summary;
use crate::hooks::{AnswerVerdicts, HookRecord, HookedAnswer, HookedRequest, RecordedVerdict, StageEnd};
use crate::media::Attachment;
use crate::tool_result::{CallOutcome, Provenance, ToolResult};

/// A session in a separate store.
pub(super) struct TestSession {
    pub(super) sessions: Arc<dyn Sessions>,
    pub(super) id: SessionId,
    _store: Store,
    _dir: TempDir,
}

impl TestSession {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let store = StoreOptions::new(Engine::Sqlite { path: dir.path().join("state/state.db") })
            .open()
            .await
            .expect("a store");
        let sessions = store.sessions();
        let new = NewSession { sender: "ada".to_owned(), channel: "cli".to_owned(), ..NewSession::default() };
        let id = sessions.create(new).await.expect("a session").id;
        Self { sessions, id, _store: store, _dir: dir }
    }

    pub(super) fn journal(&self) -> StoreJournal {
        StoreJournal::new(Arc::clone(&self.sessions), self.id)
    }

    pub(super) async fn look(&self) -> SessionPosition {
        session_position(&*self.sessions, self.id).await.expect("it can be read")
    }
}

pub(super) fn received(text: &str) -> JournalEntry {
    JournalEntry::Received { text: text.to_owned(), with: Box::default() }
}

pub(super) fn asked(text: &str) -> JournalEntry {
    JournalEntry::Asked { text: text.to_owned(), with: Box::default() }
}

pub(super) fn says(text: &str) -> JournalEntry {
    JournalEntry::Answered {
        answer: Box::new(Answer { text: text.to_owned(), ..Answer::default() }),
        micro_usd: 3,
        withheld: false,
    }
}

pub(super) fn calls(ids: &[&str]) -> JournalEntry {
    let call = |id: &&str| ToolCall {
        id: (*id).to_owned(),
        name: "files__read".to_owned(),
        arguments: Arguments::Object(json!({ "path": id }).as_object().cloned().unwrap_or_default()),
    };
    let answer =
        Answer { calls: ids.iter().map(call).collect(), finish: Finish::ToolCalls, ..Answer::default() };
    JournalEntry::Answered { answer: Box::new(answer), micro_usd: 3, withheld: false }
}

fn record(verdict: RecordedVerdict) -> HookRecord {
    let role = talon_extensions::Role::RequestHook;
    HookRecord { role, name: "pii.scan".to_owned(), verdict, noted: vec!["lang".to_owned()], duration_ms: 3 }
}

pub(super) fn result(said: &str) -> ToolResult {
    ToolResult {
        outcome: CallOutcome::Succeeded,
        block: format!("[plugin_output]\n{said}\n[/plugin_output]"),
        output: said.to_owned(),
        provenance: Provenance::default(),
    }
}

pub(super) fn ended() -> JournalEntry {
    JournalEntry::Ended(TurnOutcome { reason: "done".to_owned(), ..TurnOutcome::default() })
}

// Promises: AGENT-26
#[tokio::test]
async fn every_entry_comes_back_as_it_was() {
    let place = TestSession::new().await;
    let journal = place.journal();
    let with = TurnOptions {
        can_answer: true,
        member: "gw:telegram/7".to_owned(),
        within: vec!["files.*".to_owned()],
        no_tools: true,
        schema: Some(json!({ "type": "object" })),
        model: Some("a/b".to_owned()),
        thinking: Thinking::High,
        is_general_thinking: true,
        sampling: talon_agent_settings::Sampling { max_tokens: Some(5), ..Default::default() },
        local_only: true,
        plans_first: true,
        images: vec![Image {
            digest: "d".to_owned(),
            kind: ImageKind::Png,
            bytes: 7,
            width: 2,
            height: 3,
            name: "a.png".to_owned(),
        }],
        attachments: vec![Attachment::of(b"%PDF-1.7\xff", "a.pdf")],
        micro_usd: Some(500),
        hooks: Some(Box::new(HookedRequest {
            original: Some("hi there".to_owned()),
            metadata: [("lang".to_owned(), "en".to_owned())].into(),
            records: vec![
                record(RecordedVerdict::Replace),
                record(RecordedVerdict::Failed("why".to_owned())),
            ],
            end: None,
        })),
        client_id: "m1".to_owned(),
        channel: "telegram".to_owned(),
        sender_name: "Ada".to_owned(),
        merged: vec!["m2".to_owned()],
        metadata: [("topic".to_owned(), "demo".to_owned())].into(),
    };
    let answer = Answer {
        text: "text".to_owned(),
        calls: vec![ToolCall {
            id: "1".to_owned(),
            name: "t".to_owned(),
            arguments: Arguments::Unreadable("{".to_owned()),
        }],
        cut_call: Some("u".to_owned()),
        finish: Finish::Length,
        usage: Some(Usage {
            input_tokens: 1,
            cached_input_tokens: 2,
            cache_written_tokens: 5,
            output_tokens: 3,
            thinking_tokens: 4,
        }),
        model: "m".to_owned(),
        thoughts: Some(Thoughts {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            data: json!([{ "signed": "x" }]),
        }),
        thinking: "hm".to_owned(),
    };
    let entries = vec![
        JournalEntry::Asked { text: "hi".to_owned(), with: Box::new(with.clone()) },
        JournalEntry::Answered { answer: Box::new(answer), micro_usd: 42, withheld: false },
        JournalEntry::Answered {
            answer: Box::new(Answer { text: "held".to_owned(), ..Answer::default() }),
            micro_usd: 1,
            withheld: true,
        },
        JournalEntry::AnswerHooked(Box::new(HookedAnswer {
            text: "refined".to_owned(),
            verdicts: AnswerVerdicts {
                replaced: true,
                records: vec![record(RecordedVerdict::Pass)],
                ..AnswerVerdicts::default()
            },
        })),
        JournalEntry::AnswerHooked(Box::new(HookedAnswer {
            text: String::new(),
            verdicts: AnswerVerdicts {
                end: Some(StageEnd::Dropped { by: "response_hook/a.b".to_owned(), reason: "no".to_owned() }),
                ..AnswerVerdicts::default()
            },
        })),
        JournalEntry::CallStarted { place: 0 },
        JournalEntry::CallFinished { place: 0, result: result("early") },
        JournalEntry::CallsFinished(vec![
            result("one"),
            ToolResult { outcome: CallOutcome::NotOffered, ..result("two") },
        ]),
        JournalEntry::Noted { text: "note".to_owned(), feedback: false },
        JournalEntry::Noted { text: "feedback".to_owned(), feedback: true },
    ];
    for entry in &entries {
        journal.add(7, entry.clone()).await.expect("written");
    }
    let look = place.look().await;
    assert_eq!(look.last_turn, 7);
    let unfinished = look.unfinished.expect("it has no end");
    assert_eq!((unfinished.turn, unfinished.request.as_str(), &unfinished.options), (7, "hi", &with));
    assert_eq!(unfinished.entries, entries);
    close(&journal, 7, "It was interrupted.").await.expect("closed");
    assert_eq!(place.look().await, SessionPosition { last_turn: 7, unfinished: None });
}

#[tokio::test]
async fn a_summary_stands_for_whole_turns_and_what_it_stands_for_stays() {
    let place = TestSession::new().await;
    let journal = place.journal();
    for turn in 1..=3 {
        for entry in
            [asked("q"), calls(&["a"]), JournalEntry::CallsFinished(vec![result("r")]), says("a"), ended()]
        {
            journal.add(turn, entry).await.expect("written");
        }
    }
    let (past, summary) = journal.past().await.expect("read");
    assert_eq!((past.len(), summary), (12, Summary::default()));
    let summary = Summary { text: "they spoke".to_owned(), messages: 8, tokens: 80 };
    journal.summarized(3, summary.clone()).await.expect_err("in the middle of a turn");
    journal.summarized(0, summary.clone()).await.expect_err("nothing");
    journal.summarized(13, summary.clone()).await.expect_err("more than there is");
    journal.summarized(8, summary.clone()).await.expect("two turns");
    let (past, kept) = journal.past().await.expect("read");
    assert_eq!((past.len(), kept), (4, summary));
    assert!(past.iter().all(|past| past.turn == 3));
    assert_eq!(place.look().await.last_turn, 3);

    let all = Summary { text: "all of it".to_owned(), messages: 12, tokens: 120 };
    journal.summarized(4, all.clone()).await.expect("the rest");
    assert_eq!(journal.past().await.expect("read"), (Vec::new(), all));
    assert_eq!(
        place.look().await,
        SessionPosition { last_turn: 3, unfinished: None },
        "turns are still counted on"
    );
    let everything =
        place.sessions.messages(place.id, View::All, &PageRequest::first(0)).await.expect("read");
    assert_eq!(everything.items.len(), 15 + 2);
}

#[tokio::test]
async fn people_are_shown_what_was_said_and_not_how_it_is_kept() {
    let place = TestSession::new().await;
    let journal = place.journal();
    let entries = [
        asked("q"),
        calls(&["a", "b"]),
        JournalEntry::CallStarted { place: 0 },
        JournalEntry::CallFinished { place: 1, result: result("two") },
        JournalEntry::CallsFinished(vec![result("one"), result("two")]),
        says("answer"),
        ended(),
    ];
    for entry in entries {
        journal.add(1, entry).await.expect("written");
    }
    let page = place.sessions.messages(place.id, View::All, &PageRequest::first(0)).await.expect("read");
    let shown = client_messages(&page.items);
    let roles: Vec<&str> = shown.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant"]);
    assert_eq!(shown[1].tool_calls[1].call_id, "b");
    assert_eq!((shown[3].tool_results[0].call_id.as_str(), shown[3].tool_results[0].success), ("b", true));
    assert!(shown[3].tool_results[0].output.contains("two") && shown[3].content.is_empty());
}

// Promises: GW-136
#[tokio::test]
async fn what_hooks_changed_is_told_beside_what_people_see() {
    let place = TestSession::new().await;
    let journal = place.journal();
    let hooks = HookedRequest { original: Some("hi there".to_owned()), ..HookedRequest::default() };
    let with = TurnOptions { hooks: Some(Box::new(hooks)), ..TurnOptions::default() };
    let held = Answer { text: "held".to_owned(), ..Answer::default() };
    let refined = HookedAnswer { text: "refined".to_owned(), verdicts: AnswerVerdicts::default() };
    for entry in [
        JournalEntry::Asked { text: "hi".to_owned(), with: Box::new(with) },
        JournalEntry::Answered { answer: Box::new(held), micro_usd: 1, withheld: true },
        JournalEntry::AnswerHooked(Box::new(refined)),
        ended(),
        asked("plain"),
        says("untouched"),
    ] {
        journal.add(1, entry).await.expect("written");
    }
    let page = place.sessions.messages(place.id, View::All, &PageRequest::first(0)).await.expect("read");
    let shown: Vec<_> =
        client_messages(&page.items).into_iter().map(|one| (one.content, one.hooked)).collect();
    let changed = |seen: &str, hooked: &str| (seen.to_owned(), Some(hooked.to_owned()));
    assert_eq!(shown[..2], [changed("hi there", "hi"), changed("refined", "held")], "{shown:?}");
    assert!(shown[2..].iter().all(|(_, hooked)| hooked.is_none()), "{shown:?}");
}

#[tokio::test]
async fn a_session_that_somebody_else_wrote_can_be_gone_on_with() {
    let place = TestSession::new().await;
    let foreign = [
        NewMessage::text(Role::System, "be kind"),
        NewMessage::text(Role::User, "one"),
        NewMessage::text(Role::Assistant, "two"),
        NewMessage { tool_calls: Some(json!([1])), ..NewMessage::text(Role::Tool, "?") },
    ];
    place.sessions.append(place.id, Expected::Any, foreign.to_vec()).await.expect("written");
    let journal = place.journal();
    let (past, _) = journal.past().await.expect("read");
    let said: Vec<_> = past.iter().map(|past| (past.turn, past.message.clone())).collect();
    assert_eq!(said[0], (1, Message::User { text: "one".to_owned() }));
    assert_eq!(said.len(), 2);
    assert_eq!(place.look().await, SessionPosition { last_turn: 1, unfinished: None });
    journal.add(2, asked("three")).await.expect("written");
    assert_eq!(place.look().await.unfinished.expect("it goes on").turn, 2);
}

// Promises: AGENT-26
#[tokio::test]
async fn what_cannot_be_stored_is_an_error_and_leaves_nothing() {
    let place = TestSession::new().await;
    let journal = place.journal();
    let error = journal.add(1, asked(&"x".repeat(2 << 20))).await.expect_err("too long");
    assert!(error.to_string().contains("content"), "{error}");
    assert_eq!(place.look().await, SessionPosition::default());
    let gone = StoreJournal::new(Arc::clone(&place.sessions), SessionId::generate());
    gone.add(1, asked("?")).await.expect_err("there is no such session");
    gone.past().await.expect_err("there is no such session");
}
