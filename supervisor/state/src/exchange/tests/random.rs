//! Records as they come from anywhere.

use proptest::prelude::*;
use serde_json::Value;
use talon_store::{
    ExportedSession, Key, MemoryId, Message, Overrides, Role, Session, SessionId, SessionState, Step,
    StoredMemory, Timestamp, Workflow,
};

/// Texts that some reader of YAML takes for something else.
pub(super) const ODD: &[&str] = &[
    "",
    " ",
    "  leading",
    "trailing ",
    "\ttab",
    "a\tb",
    "yes",
    "No",
    "null",
    "~",
    "NULL",
    "true",
    "1e3",
    "0x1f",
    "0755",
    "-1",
    "+1",
    ".5",
    "1_000",
    "12:30:45",
    "2026-02-21",
    "2026-02-21T15:00:00Z",
    ".inf",
    ".NaN",
    "=",
    "<<",
    "- a",
    "? a",
    "a: b",
    "a:",
    "# no comment",
    "a # b",
    "[a]",
    "{a: b}",
    "&a",
    "*a",
    "!a",
    "!!binary aGk=",
    "|",
    ">",
    "%YAML",
    "---",
    "...",
    "@a",
    "`a`",
    "'",
    "\"",
    "\\",
    "\\n",
    "it's",
    "a\nb",
    "a\nb\n",
    "a\nb\n\n",
    "\na",
    "a\n",
    "\n",
    "\n\n",
    "a\n\n\nb",
    "a\n  b\n",
    "a\n \nb",
    "a\n\t\nb",
    " a\nb",
    "a \nb ",
    "---\na",
    "a\n---\n",
    "a\n...\nb",
    "a\r\nb",
    "\r",
    "a\u{85}b",
    "a\u{2028}b",
    "\u{feff}a",
    "a\u{feff}",
    "\u{0}",
    "a\u{0}b",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{9f}",
    "\u{fffe}",
    "\u{ffff}",
    "\u{10ffff}",
    "\u{a0}",
    "é",
    "日本語 テキスト",
    "中\n文",
    "🦅",
    "👩‍👩‍👧",
    "a🦅b\nc",
    "e\u{301}",
    "\u{202e}abc",
    "key: |\n  x",
];

pub(super) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => prop::sample::select(ODD).prop_map(str::to_owned),
        1 => "[ -~\n\t]{0,40}",
        1 => "[a-z0-9 :#\\-\n]{0,30}",
        1 => any::<String>(),
        1 => prop::collection::vec(any::<char>(), 0..20).prop_map(|chars| chars.into_iter().collect()),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Fractions that every reader of JSON takes exactly.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(ODD)
            .prop_filter("a name", |name| { !name.is_empty() && !name.chars().any(char::is_control) })
            .prop_map(str::to_owned),
        "[a-zA-Z:/@ ]{1,20}",
    ]
}

fn at() -> impl Strategy<Value = Timestamp> {
    (0_i64..253_402_300_799_999).prop_map(Timestamp::from_millis)
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let json = || prop::option::of(json_value());
    // Long enough that no two of one session are the same.
    let key = || prop::option::of("[a-z]{16}");
    let parts = (role, text(), json(), json(), at(), key());
    parts.prop_map(|(role, content, tool_calls, tool_results, at, key)| Message {
        sequence: 0,
        role,
        content,
        tool_calls: tool_calls.filter(|value| !value.is_null()),
        tool_results: tool_results.filter(|value| !value.is_null()),
        at,
        summarizes: None,
        replaced_by: None,
        key,
    })
}

pub(super) fn session() -> impl Strategy<Value = ExportedSession> {
    let metadata = prop::collection::btree_map(name(), text(), 0..4);
    let maybe = || prop::option::of(name());
    let overrides = (maybe(), maybe(), maybe());
    let speakers = (name(), name(), maybe(), any::<bool>());
    let messages = prop::collection::vec((message(), 1_u64..3), 0..6);
    (speakers, overrides, metadata, at(), at(), messages, 1_u64..3).prop_map(
        |(
            (sender, channel, active_model, idle),
            (model, thinking, verbosity),
            metadata,
            created_at,
            updated_at,
            read,
            gap,
        )| {
            let mut last = 0;
            let mut messages = Vec::new();
            for (mut message, gap) in read {
                last += gap;
                message.sequence = last;
                messages.push(message);
            }
            // The last is the summary of the first.
            if let [first, .., summary] = &mut messages[..] {
                (first.replaced_by, summary.summarizes) = (Some(summary.sequence), Some(first.sequence));
            }
            let session = Session {
                id: SessionId::generate(),
                sender,
                channel,
                state: if idle { SessionState::Idle } else { SessionState::Active },
                active_model,
                overrides: Overrides { model, thinking, verbosity },
                metadata,
                created_at,
                updated_at,
                next_sequence: last + gap,
            };
            ExportedSession { session, messages }
        },
    )
}

pub(super) fn memory() -> impl Strategy<Value = StoredMemory> {
    let steps = prop::collection::vec((name(), name(), 1_u32..5), 1..4);
    let workflow = (text(), steps, name()).prop_filter_map("a trigger", |(trigger, steps, outcome)| {
        let mut last = 0;
        let steps = steps.into_iter().map(|(plugin, action, gap)| {
            last += gap;
            Step { plugin, action, order: last }
        });
        (!trigger.trim().is_empty()).then(|| Workflow { trigger, steps: steps.collect(), outcome })
    });
    let tags = prop::collection::btree_set(name(), 0..4);
    let content = text().prop_filter("a content", |content| !content.is_empty());
    (content, tags, name(), prop::option::of(workflow), at(), any::<u32>(), at()).prop_map(
        |(content, mut tags, source, workflow, created_at, count, last_used)| {
            if workflow.is_some() {
                tags.insert("workflow".into());
            }
            let (id, count) = (MemoryId::generate(), u64::from(count));
            StoredMemory { id, content, tags, source, workflow, created_at, count, last_used }
        },
    )
}

pub(super) fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![text().prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..300)]
}

pub(super) fn key() -> impl Strategy<Value = Key> {
    text().prop_filter_map("a key", |key| Key::new(key).ok())
}
