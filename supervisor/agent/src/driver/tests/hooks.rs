//! Turns with filters, request hooks and response hooks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use talon_extensions::{Effect, Extensions, HookEntry, StreamMode};
use talon_llm::model::Message;
use talon_proto::agent::chunk::Kind;
use talon_proto::host::{ExecuteResponse, Outcome};

use super::fakes::Memory;
use super::setting::Setting;
use crate::answer::Schema;
use crate::driver::TurnRunner as _;
use crate::hooks::{Hooks, RecordedVerdict, RoleCall, RoleCallError, RoleHost};
use crate::journal::JournalEntry;

const SAYS: &str = "answers: [{ think: a secret thought, say: the bug is fixed }]";

/// Longer than what hooks see waits until it is written.
const LONG: Duration = Duration::from_millis(50);

type Answers = dyn Fn(&str, &Value) -> Value + Send + Sync;

/// Actions that answer as a test needs, by their names and arguments.
pub(super) struct FakeRoleHost {
    answers: Box<Answers>,
    /// How long each takes.
    takes: Duration,
    pub(super) calls: Mutex<Vec<(String, Value)>>,
}

impl FakeRoleHost {
    fn new(answers: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> Arc<Self> {
        Self::slow(Duration::ZERO, answers)
    }

    fn slow(takes: Duration, answers: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { answers: Box::new(answers), takes, calls: Mutex::default() })
    }

    fn called(&self) -> Vec<String> {
        self.calls.lock().iter().map(|(action, _)| action.clone()).collect()
    }
}

#[async_trait]
impl RoleHost for FakeRoleHost {
    async fn call(&self, call: &RoleCall) -> Result<ExecuteResponse, RoleCallError> {
        let arguments: Value = serde_json::from_str(&call.arguments_json).expect("JSON");
        self.calls.lock().push((call.action.clone(), arguments.clone()));
        tokio::time::sleep(self.takes).await;
        let structured_content = (self.answers)(&call.action, &arguments).to_string();
        Ok(ExecuteResponse { outcome: Outcome::Ok.into(), structured_content, ..ExecuteResponse::default() })
    }
}

fn all(action: &str) -> HookEntry {
    HookEntry { may: vec![Effect::Annotate, Effect::Replace, Effect::Drop], ..HookEntry::new(action) }
}

/// A filter, two request hooks and a response hook: `p.block`, `p.note`, `p.refine`, `p.polish`.
fn extensions() -> Extensions {
    Extensions {
        filters: vec![HookEntry::new("p.block")],
        request_hooks: vec![
            HookEntry::new("p.note"),
            HookEntry { metadata: vec!["lang".to_owned()], ..all("p.refine") },
        ],
        response_hooks: vec![all("p.polish")],
        ..Extensions::default()
    }
}

/// What the actions of [`extensions`] answer.
fn usual(action: &str, asked: &Value) -> Value {
    let message = asked["message"].as_str().expect("a message");
    match action {
        "block" if message.contains("spam") => json!({"verdict": "drop", "reason": "it is spam"}),
        "note" => json!({"verdict": "annotate", "metadata": {"lang": "en", "hidden": "x"}}),
        "refine" if message.contains("loud") => json!({"verdict": "replace", "message": "quiet"}),
        "polish" if message.contains("bug") => {
            json!({"verdict": "replace", "message": "the defect is fixed"})
        }
        "polish" if message.contains("password") => json!({"verdict": "drop", "reason": "a secret"}),
        _ => json!({"verdict": "pass"}),
    }
}

fn setting(script: &str, extensions: Extensions, host: &Arc<FakeRoleHost>) -> Setting {
    let hooks = Hooks::new(Arc::new(extensions), Arc::clone(host) as _);
    Setting { hooks, ..Setting::new(script) }
}

fn texts(setting: &Setting) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User { text } | Message::Assistant { text, .. } => Some(text.clone()),
        _ => None,
    };
    setting.journal.said().iter().filter_map(|past| text(&past.message)).collect()
}

// Promises: EXT-8
#[tokio::test(start_paused = true)]
async fn a_message_is_refined_before_anything_has_it_and_an_answer_before_anybody_sees_it() {
    let host = FakeRoleHost::new(usual);
    let setting = setting(SAYS, extensions(), &host);
    assert_eq!(setting.answer("a loud cry").await, "the defect is fixed");
    assert_eq!(host.called(), ["block", "note", "refine", "polish"]);
    assert_eq!(setting.journal.kinds(), ["received", "asked", "answered", "hooked", "ended"]);
    let question = setting.model.last();
    assert!(format!("{:?}", question.messages).contains("quiet"), "{question:?}");
    assert!(!format!("{:?}", question.messages).contains("loud"), "{question:?}");
    assert_eq!(texts(&setting), ["quiet", "the defect is fixed"]);
    let Some((_, JournalEntry::Asked { text, with })) = setting.journal.entries().get(1).cloned() else {
        panic!()
    };
    let hooked = with.hooks.expect("hooks ran");
    assert_eq!((text.as_str(), hooked.original.as_deref()), ("quiet", Some("a loud cry")));
    let verdicts: Vec<_> = hooked.records.into_iter().map(|record| record.verdict).collect();
    assert_eq!(verdicts, [RecordedVerdict::Pass, RecordedVerdict::Annotate, RecordedVerdict::Replace]);
    // What was learned and recalled is the refined message, too.
    assert_eq!(setting.recall.learned.lock()[0].request, "quiet");
}

// Promises: EXT-19
#[tokio::test(start_paused = true)]
async fn metadata_reaches_the_hooks_whose_entries_list_the_key() {
    let host = FakeRoleHost::new(usual);
    let setting = setting(SAYS, extensions(), &host);
    setting.answer("hello").await;
    let calls = host.calls.lock();
    let metadata: Vec<&Value> = calls.iter().map(|(_, asked)| &asked["metadata"]).collect();
    assert_eq!(metadata, [&json!({}), &json!({}), &json!({"lang": "en"}), &json!({})]);
    assert_eq!(calls[0].1["session"], json!({"id": "s", "turn": 1, "sender": "ada", "channel": "cli"}));
}

// Promises: EXT-10
#[tokio::test(start_paused = true)]
async fn a_dropped_message_reaches_no_model_and_no_memory() {
    let host = FakeRoleHost::new(usual);
    let setting = setting(SAYS, extensions(), &host);
    let end = setting.run("spam, spam, spam").await;
    let (word, sentence) = end.outcome.expect_err("dropped");
    assert_eq!(
        (word.as_str(), sentence.as_str()),
        ("dropped", "filter/p.block dropped the message: it is spam")
    );
    assert_eq!(host.called(), ["block"], "no hook after it sees it");
    assert_eq!((setting.model.times(), setting.recall.learned.lock().len()), (0, 0));
    assert_eq!(texts(&setting), Vec::<String>::new());
    assert_eq!(setting.answer("hello").await, "the defect is fixed");
    assert!(!format!("{:?}", setting.model.last().messages).contains("spam"));
}

// Promises: EXT-11, EXT-20
#[tokio::test(start_paused = true)]
async fn nobody_sees_of_an_answer_what_no_hook_has_seen() {
    let host = FakeRoleHost::new(usual);
    let setting =
        setting("answers: [{ think: it is kumquat, say: the password is kumquat }]", extensions(), &host);
    let end = setting.run("what is it").await;
    assert_eq!(end.outcome.clone().expect_err("dropped").0, "dropped");
    assert_eq!(end.partial, None);
    let heard = format!("{:?}", setting.heard.0.lock());
    assert!(!heard.contains("kumquat") && heard.contains("a secret"), "{heard}");
    let seen = texts(&setting).join("\n");
    assert!(!seen.contains("kumquat") && seen.contains("withheld"), "{seen}");
}

// Promises: EXT-20
#[tokio::test(start_paused = true)]
async fn text_is_held_back_unless_the_entry_says_otherwise() {
    let through = Extensions {
        response_hooks: vec![HookEntry { stream: Some(StreamMode::Through), ..all("p.polish") }],
        ..Extensions::default()
    };
    let annotates = Extensions {
        response_hooks: vec![HookEntry { may: vec![Effect::Annotate], ..HookEntry::new("p.none") }],
        ..Extensions::default()
    };
    for (extensions, streamed) in [
        (extensions(), "the defect is fixed"),
        (through, "the bug is fixedthe defect is fixed"),
        (annotates, "the bug is fixed"),
    ] {
        let host = FakeRoleHost::new(usual);
        let setting = setting(SAYS, extensions, &host);
        let answer = setting.answer("hello").await;
        assert!(streamed.ends_with(&answer), "{answer}");
        assert_eq!(setting.heard.text(), streamed);
        let thoughts = setting.heard.0.lock().iter().any(|chunk| matches!(chunk, Kind::Thinking(_)));
        assert_eq!(thoughts, streamed.contains("bug"), "{streamed}");
    }
}

// Promises: EXT-21
#[tokio::test(start_paused = true)]
async fn a_schema_is_checked_after_the_last_hook() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (replacement, fits) in [(r#"{"n": 2}"#, true), (r#"{"n": "two"}"#, false), ("no JSON", false)] {
        let host = FakeRoleHost::new(move |_, _| json!({"verdict": "replace", "message": replacement}));
        let extensions = Extensions { response_hooks: vec![all("p.polish")], ..Extensions::default() };
        let setting = setting(r#"answers: [{ say: '{"n": 1}' }]"#, extensions, &host);
        let mut spec = setting.spec("count");
        spec.schema = Some(Arc::new(Schema::new(schema.clone()).expect("a schema")));
        let end = setting.run_spec(spec).await;
        match end.outcome {
            Ok(answer) => assert!(fits && answer == replacement, "{answer}"),
            Err((word, sentence)) => {
                assert!(!fits && word == "hook_failed" && sentence.contains("does not fit"), "{sentence}")
            }
        }
        assert_eq!(setting.model.times(), 1, "a model cannot correct a hook");
    }
}

// Promises: EXT-18
#[tokio::test(start_paused = true)]
async fn a_resumed_turn_repeats_no_hook_that_is_in_the_journal() {
    for entries in 1..5 {
        let host = FakeRoleHost::slow(LONG, usual);
        let setting = setting(SAYS, extensions(), &host);
        // What response hooks say is written with the turn's end. A journal of an earlier version may have it alone.
        if entries == 4 {
            setting.answer("a loud cry").await;
        } else {
            *setting.journal.hangs_after.lock() = Some(entries);
            let (spec, environment, driver) =
                (setting.spec("a loud cry"), setting.environment(), setting.driver());
            tokio::select! {
                biased;
                end = driver.run(&environment, spec) => panic!("it was to hang: {end:?}"),
                () = setting.journal.hangs.notified() => {}
            }
        }
        let before = host.called();
        let kept = setting.journal.entries()[..entries].to_vec();
        let setting = Setting { journal: Memory::of(kept), heard: Arc::default(), ..setting };
        let mut spec = setting.spec("it comes from the journal");
        let unfinished = Setting::interrupted(&setting.journal.entries());
        spec.caller.turn = unfinished.turn;
        spec.resumes = Some(unfinished);
        let end = setting.run_spec(spec).await;
        assert_eq!(end.outcome, Ok("the defect is fixed".to_owned()), "killed after {entries}");
        let again = host.called()[before.len()..].to_vec();
        let expected: &[&str] = match entries {
            1 => &["block", "note", "refine", "polish"],
            2 | 3 => &["polish"],
            _ => &[],
        };
        assert_eq!(again, expected, "killed after {entries}");
        assert_eq!(setting.journal.kinds(), ["received", "asked", "answered", "hooked", "ended"]);
        assert!(setting.heard.text().ends_with("the defect is fixed"));
    }
}

// Promises: EXT-24
#[tokio::test(start_paused = true)]
async fn hooks_that_answer_at_once_cost_no_write_and_others_wait_for_none() {
    for (takes, writes) in [(Duration::ZERO, &[2, 3][..]), (LONG, &[1, 1, 1, 2])] {
        let host = FakeRoleHost::slow(takes, usual);
        let setting = setting(SAYS, extensions(), &host);
        setting.answer("a loud cry").await;
        assert_eq!(setting.journal.kinds(), ["received", "asked", "answered", "hooked", "ended"]);
        assert_eq!(*setting.journal.writes.lock(), writes, "{takes:?}");
    }
}

// Promises: EXT-24
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_stored_after_its_hooks_is_not_given() {
    let host = FakeRoleHost::new(usual);
    let setting = setting(SAYS, extensions(), &host);
    // The message with what its hooks said fits; the answer, what its hooks said and the end do not.
    *setting.journal.fails_after.lock() = Some(2);
    let end = setting.run("a loud cry").await;
    assert_eq!(end.outcome.expect_err("not stored").0, "not_stored");
    assert_eq!((setting.heard.text().as_str(), end.partial), ("", None));
    assert_eq!(setting.journal.kinds(), ["received", "asked"]);
}

// Promises: EXT-18
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_withheld_is_shown_after_its_hooks_are_gone() {
    let host = FakeRoleHost::new(usual);
    let first = setting(SAYS, extensions(), &host);
    first.answer("hello").await;
    let kept = first.journal.entries()[..3].to_vec();
    let setting = Setting { hooks: Hooks::none(), journal: Memory::of(kept), heard: Arc::default(), ..first };
    let mut spec = setting.spec("it comes from the journal");
    let unfinished = Setting::interrupted(&setting.journal.entries());
    spec.caller.turn = unfinished.turn;
    spec.resumes = Some(unfinished);
    assert_eq!(setting.run_spec(spec).await.outcome, Ok("the bug is fixed".to_owned()));
    assert_eq!(setting.journal.kinds(), ["received", "asked", "answered", "hooked", "ended"]);
    assert_eq!(setting.heard.text(), "the bug is fixed");
}

#[tokio::test(start_paused = true)]
async fn a_sub_agents_task_goes_through_the_hooks_that_list_it() {
    let host = FakeRoleHost::new(usual);
    let listed = Extensions {
        request_hooks: vec![
            HookEntry { subagents: vec!["Explorer".to_owned()], ..all("p.refine") },
            all("p.refine2"),
        ],
        ..Extensions::default()
    };
    let setting = setting(SAYS, listed, &host);
    let mut spec = setting.spec("loud");
    spec.caller.subagent = "Explorer".to_owned();
    setting.run_spec(spec).await.outcome.expect("an answer");
    assert_eq!(host.called(), ["refine"]);
    assert_eq!(host.calls.lock()[0].1["session"]["subagent"], "Explorer");
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_hooks_is_as_it_was() {
    let setting = Setting::new(SAYS);
    assert_eq!(setting.answer("hello").await, "the bug is fixed");
    assert_eq!(setting.journal.kinds(), ["asked", "answered", "ended"]);
    let Some((_, JournalEntry::Asked { with, .. })) = setting.journal.entries().first().cloned() else {
        panic!()
    };
    assert_eq!(with.hooks, None);
}
