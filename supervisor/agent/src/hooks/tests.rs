use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use talon_extensions::contract::HookSession;
use talon_extensions::{Effect, Extensions, FailurePolicy, HookEntry};
use talon_proto::host::{ExecuteResponse, GuardReport, Outcome};
use talon_proto::plugin::InputRequest;

use super::*;

/// Answers every call alike.
struct One(Mutex<Option<Result<ExecuteResponse, RoleCallError>>>);

#[async_trait]
impl RoleHost for One {
    async fn call(&self, _: &RoleCall) -> Result<ExecuteResponse, RoleCallError> {
        let answer = self.0.lock().clone();
        match answer {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

fn answers(structured: &Value) -> ExecuteResponse {
    ExecuteResponse {
        outcome: Outcome::Ok.into(),
        structured_content: structured.to_string(),
        ..ExecuteResponse::default()
    }
}

async fn run(answer: Option<Result<ExecuteResponse, RoleCallError>>, hook: HookEntry) -> StageOutcome {
    let extensions = Extensions { request_hooks: vec![hook], ..Extensions::default() };
    let hooks = Hooks::new(Arc::new(extensions), Arc::new(One(Mutex::new(answer))));
    hooks.run(Stage::Request, "hello", &HookSession::default(), BTreeMap::new()).await
}

fn open() -> HookEntry {
    HookEntry { on_failure: Some(FailurePolicy::Open), ..HookEntry::new("a.b") }
}

// Promises: EXT-12
#[tokio::test(start_paused = true)]
async fn whatever_is_no_verdict_is_a_failure_by_the_entrys_policy() {
    let pass = answers(&json!({"verdict": "pass"}));
    let report = GuardReport { truncated: true, ..GuardReport::default() };
    let refused = ExecuteResponse {
        outcome: Outcome::HostFault.into(),
        reason: "died".to_owned(),
        error: "x".repeat(10_000),
        ..ExecuteResponse::default()
    };
    let cases: [(Option<Result<ExecuteResponse, RoleCallError>>, &str); 8] = [
        (None, "did not answer within 5000 ms"),
        (Some(Err(RoleCallError("gone".to_owned()))), "did not make its call: gone"),
        (Some(Ok(refused)), "no verdict (died)"),
        (Some(Ok(ExecuteResponse { report: Some(report), ..pass.clone() })), "larger than 1 MiB"),
        (
            Some(Ok(ExecuteResponse { input_request: Some(InputRequest::default()), ..pass.clone() })),
            "asks a question",
        ),
        (
            Some(Ok(ExecuteResponse { structured_content: "[1]".to_owned(), ..pass.clone() })),
            "no structured content",
        ),
        (Some(Ok(ExecuteResponse { structured_content: String::new(), ..pass })), "no structured content"),
        (Some(Ok(answers(&json!({"verdict": "maybe"})))), "no verdict"),
    ];
    for (answer, why) in cases {
        let closed = run(answer.clone(), HookEntry::new("a.b")).await;
        let Some(StageEnd::Failed { by, error }) = &closed.end else { panic!("{why}: {closed:?}") };
        assert!(by == "request_hook/a.b" && error.contains(why) && error.len() < 500, "{error}");
        let open = run(answer, open()).await;
        assert_eq!((open.end, open.replaced), (None, None), "{why}");
        assert!(matches!(&open.records[0].verdict, RecordedVerdict::Failed(error) if error.contains(why)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_structured_answers_writes_the_verdict_as_text() {
    let content = json!({"verdict": "drop", "reason": "no"}).to_string();
    let answer = ExecuteResponse { structured_content: String::new(), content, ..answers(&json!({})) };
    let dropped = run(Some(Ok(answer)), HookEntry::new("a.b")).await;
    assert_eq!(
        dropped.end,
        Some(StageEnd::Dropped { by: "request_hook/a.b".to_owned(), reason: "no".to_owned() })
    );
}

#[tokio::test(start_paused = true)]
async fn the_metadata_of_a_turn_is_bounded() {
    let metadata: BTreeMap<String, String> = (0..20).map(|n| (format!("k{n}"), "x".repeat(1000))).collect();
    let answer = answers(&json!({"verdict": "annotate", "metadata": metadata}));
    let hook = |name: &str| HookEntry { name: Some(name.to_owned()), ..open() };
    let extensions = Extensions { request_hooks: vec![hook("one"), hook("two")], ..Extensions::default() };
    let hooks = Hooks::new(Arc::new(extensions), Arc::new(One(Mutex::new(Some(Ok(answer))))));
    let noted = (0..20).map(|n| (format!("old{n}"), "y".repeat(1000))).collect();
    let outcome = hooks.run(Stage::Request, "hello", &HookSession::default(), noted).await;
    assert!(
        matches!(&outcome.records[0].verdict, RecordedVerdict::Failed(why) if why.contains("are the most"))
    );
    assert!(outcome.records[0].noted.is_empty());
    assert_eq!(outcome.metadata.len(), 20, "what was noted before stays");
}

#[tokio::test(start_paused = true)]
async fn an_action_without_a_role_gets_the_arguments_of_its_entry() {
    let args = json!({"text": "<{{ message }}>", "turn": "{{ session.turn }}"});
    let hook = HookEntry { args: serde_json::from_value(args).expect("arguments"), ..open() };
    let request = talon_extensions::contract::HookRequest { message: "hi".to_owned(), ..Default::default() };
    let host = One(Mutex::new(Some(Ok(answers(&json!({"verdict": "pass"}))))));
    let answer = ask(&host, talon_extensions::Role::RequestHook, &hook, &request).await;
    assert_eq!(Value::Object(answer.arguments), json!({"text": "<hi>", "turn": 0}));
    assert!(answer.verdict.is_ok());
}

#[test]
fn text_is_held_where_any_hook_may_change_it() {
    let only_notes = HookEntry {
        may: vec![Effect::Annotate],
        deadline: talon_agent_settings::TimeSpan::from_secs(1),
        ..HookEntry::new("a.b")
    };
    assert_eq!(only_notes.deadline(), Duration::from_secs(1));
    let hooks = |response_hooks| {
        Hooks::new(Arc::new(Extensions { response_hooks, ..Extensions::default() }), Arc::new(NoRoleHost))
    };
    assert!(!Hooks::none().hold_text("") && !hooks(vec![only_notes.clone()]).hold_text(""));
    assert!(hooks(vec![only_notes, HookEntry::new("a.c")]).hold_text(""));
}
