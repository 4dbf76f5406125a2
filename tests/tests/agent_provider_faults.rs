//! Each fault of a model provider strikes at each point of a turn, once and without end, without and with a
//! second provider, and the tables of what came of it are `docs/agent-faults.md`. `TALON_REWRITE_DOCS=1`
//! writes the page anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use talon_tests::ask::{AskResult, ask};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Supervisor, example, repository};
use tokio::task::JoinSet;

const REWRITE: &str = "TALON_REWRITE_DOCS";
const PAGE: &str = "docs/agent-faults.md";
/// Faults that are tried at once, each with a supervisor.
const AT_ONCE: usize = 4;

const SECOND: &str = "other/second";

const DONE: &str = "Done.";
const HELPER_FAILED: &str = "Done without the helper.";

/// Where in a turn the provider is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    First,
    AfterResult,
    Summary,
    SubAgent,
}

const POINTS: [Point; 4] = [Point::First, Point::AfterResult, Point::Summary, Point::SubAgent];

impl Point {
    /// Where this request is asked.
    fn of(question: &Value) -> Self {
        let messages = question["messages"].as_array().cloned().unwrap_or_default();
        let says = |text: &str| {
            messages.iter().any(|it| it["role"] == "system" && it["content"].to_string().contains(text))
        };
        if says("You write the running summary") {
            Self::Summary
        } else if says("You write what is asked for") {
            Self::SubAgent
        } else if messages.last().is_some_and(|last| last["role"] == "tool") {
            Self::AfterResult
        } else {
            Self::First
        }
    }

    /// What a person asks so that the turn gets there.
    fn question(self) -> String {
        match self {
            Self::First => "Are you there?".to_owned(),
            // So long that earlier ones no longer fit.
            Self::Summary => "We talk about the garden and its plants. ".repeat(150),
            Self::AfterResult => "Greet Ada".to_owned(),
            Self::SubAgent => "Have a poem written".to_owned(),
        }
    }
}

/// What a model that works says.
fn healthy(question: &Value) -> ScriptedReply {
    let messages = question["messages"].as_array().cloned().unwrap_or_default();
    let asked = messages.iter().rev().find(|it| it["role"] == "user");
    let asked = asked.map(|it| it["content"].to_string()).unwrap_or_default();
    let call = |name: &str, arguments| ScriptedReply::ToolCalls(vec![(name.to_owned(), arguments)]);
    match Point::of(question) {
        Point::Summary => ScriptedReply::Text("They greeted each other.".to_owned()),
        Point::SubAgent => ScriptedReply::Text(r#"{"content": "a poem", "explanation": "short"}"#.to_owned()),
        Point::First if asked.contains("Greet Ada") => call("hello__greet", json!({"name": "Ada"})),
        Point::First if asked.contains("poem written") => {
            call("subagent__run", json!({"agent": "WriterAgent", "task": "Write a poem"}))
        }
        Point::AfterResult
            if messages.last().is_some_and(|last| last.to_string().contains("gave no result")) =>
        {
            ScriptedReply::Text(HELPER_FAILED.to_owned())
        }
        Point::First | Point::AfterResult => ScriptedReply::Text(DONE.to_owned()),
    }
}

/// A name, and what the provider does.
fn faults(with_second: bool) -> Vec<(&'static str, ScriptedReply)> {
    let error = |status, kind: &str, text: &str| {
        let body = json!({"error": {"type": kind, "message": text}}).to_string();
        ScriptedReply::Raw(status, "application/json", body)
    };
    let events = |lines: &[Value]| {
        let lines: String = lines.iter().map(|line| format!("data: {line}\n\n")).collect();
        ScriptedReply::Raw(200, "text/event-stream", lines)
    };
    let delta = |delta: Value, finish: Value| json!({"id": "x", "model": "test", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let half = || delta(json!({"content": "I am"}), Value::Null);
    vec![
        ("500", error(500, "server_error", "an internal error")),
        ("503", error(503, "unavailable", "no capacity")),
        ("529", error(529, "overloaded_error", "Overloaded")),
        match with_second {
            false => ("429 with `Retry-After: 1`", ScriptedReply::RetryAfter(429, 1)),
            // So long that it holds for the whole turn, however busy the machine is.
            true => ("429 with `Retry-After: 60`", ScriptedReply::RetryAfter(429, 60)),
        },
        ("402, no credit", error(402, "insufficient_quota", "the account has no credit")),
        ("401, a wrong key", error(401, "authentication_error", "invalid api key")),
        ("400, a request that it does not take", error(400, "invalid_request_error", "no such parameter")),
        (
            "an error in the middle of the stream",
            events(&[half(), json!({"error": {"type": "overloaded_error", "message": "Overloaded"}})]),
        ),
        ("a stream that never ends", ScriptedReply::Endless("and so on ".to_owned())),
        ("silence", ScriptedReply::Hang),
        ("a connection that breaks in the stream", ScriptedReply::Truncated("I am".to_owned())),
        ("a page of HTML", ScriptedReply::Raw(200, "text/html", "<html>Bad gateway</html>".to_owned())),
        ("an empty answer", events(&[delta(json!({}), json!("stop"))])),
        ("an answer cut at the limit of tokens", events(&[half(), delta(json!({}), json!("length"))])),
        (
            "a call cut at the limit of tokens",
            ScriptedReply::TruncatedCall("hello__greet".to_owned(), r#"{"na"#.to_owned()),
        ),
        ("an answer withheld by a filter", events(&[delta(json!({}), json!("content_filter"))])),
        ("a refusal", events(&[delta(json!({"refusal": "I will not."}), json!("stop"))])),
    ]
}

/// What strikes next.
#[derive(Debug, Default)]
struct Armed {
    at: Option<(Point, ScriptedReply)>,
    left: usize,
    struck: usize,
}

impl Armed {
    fn reply(&mut self, question: &Value) -> ScriptedReply {
        match &self.at {
            Some((point, fault)) if *point == Point::of(question) && self.left > 0 => {
                self.left -= 1;
                self.struck += 1;
                fault.clone()
            }
            _ => healthy(question),
        }
    }
}

/// What came of a turn, as the page says it.
fn outcome(asked: &AskResult) -> String {
    match (asked.code, asked.text("text"), asked.text("reason")) {
        (Some(0), HELPER_FAILED, _) => "answered; the model was informed that the helper failed".to_owned(),
        (Some(0), DONE, _) => "answered".to_owned(),
        // The text that struck is the beginning of the answer.
        (Some(0), _, _) => "answered, continued".to_owned(),
        (Some(code), _, reason) => format!("`{reason}`, exit code {code}"),
        (None, ..) => panic!("it ends: {asked:?}"),
    }
}

/// The same with a second provider, and what that one did.
fn outcome_with_second(asked: &AskResult, point: Point) -> String {
    let ended = outcome(asked);
    let models = asked.said["models"].to_string();
    match (asked.text("provider"), point) {
        ("other", _) => {
            let notices = asked.said["notices"].to_string();
            let by_fallback = asked.said["attempts"].to_string().contains("local");
            assert!(models.contains(SECOND), "{asked:?}");
            assert!(
                notices.contains("other/second answered, for local/test did not") || !by_fallback,
                "{asked:?}"
            );
            format!("{ended} by the second")
        }
        (_, Point::Summary) if models.contains(SECOND) => format!("{ended}; the second wrote the summary"),
        (_, Point::SubAgent) if models.contains(SECOND) => format!("{ended}; the second was the helper"),
        _ => ended,
    }
}

/// Tries one fault of the only provider at all points.
async fn strike(name: &'static str, fault: ScriptedReply) -> Vec<[String; 2]> {
    let (armed, provider) = armed().await;
    let supervisor = supervisor(&provider, None).await;
    let mut rows = Vec::new();
    for point in POINTS {
        let mut cells = Vec::new();
        for times in [1, usize::MAX] {
            let asked = struck(&supervisor, &armed, (name, &fault), point, times).await;
            cells.push(outcome(&asked));
        }
        rows.push(cells.try_into().expect("once and without end"));
    }
    assert!(supervisor.stop().await.processes.is_empty());
    rows
}

/// Tries one fault of the first of two providers at all points.
async fn strike_first_of_two(name: &'static str, fault: ScriptedReply) -> Vec<String> {
    let (armed, provider) = armed().await;
    let second = Provider::responding(healthy).await;
    let mut running = supervisor(&provider, Some(&second)).await;
    let mut cells = Vec::new();
    for point in POINTS {
        // An agent that learned of a limit, of credit or of a key at the point before would not ask the first.
        if name.starts_with('4') && !cells.is_empty() {
            assert!(running.stop().await.processes.is_empty());
            running = supervisor(&provider, Some(&second)).await;
        }
        let asked = struck(&running, &armed, (name, &fault), point, usize::MAX).await;
        cells.push(outcome_with_second(&asked, point));
    }
    assert!(running.stop().await.processes.is_empty());
    cells
}

/// A turn in which the fault strikes. Whatever came of it, the session takes the next question.
async fn struck(
    supervisor: &Supervisor,
    armed: &Mutex<Armed>,
    (name, fault): (&str, &ScriptedReply),
    point: Point,
    times: usize,
) -> AskResult {
    let session = seed(supervisor, point).await;
    *armed.lock() = Armed { at: Some((point, fault.clone())), left: times, struck: 0 };
    let more: Vec<&str> = if session.is_empty() { Vec::new() } else { vec!["--session", session.as_str()] };
    let asked = ask(supervisor, &point.question(), &more).await;
    let struck = std::mem::take(&mut *armed.lock()).struck;
    assert!(struck > 0, "{name} did not strike at {point:?}: {asked:?}");
    let session = asked.text("session_id").to_owned();
    let next = ask(supervisor, "Are you there?", &["--session", &session]).await;
    assert_eq!((next.code, next.text("text")), (Some(0), DONE), "{name} at {point:?}: {next:?}");
    asked
}

async fn armed() -> (Arc<Mutex<Armed>>, Provider) {
    let armed = Arc::new(Mutex::new(Armed::default()));
    let theirs = Arc::clone(&armed);
    let provider = Provider::responding(move |question| theirs.lock().reply(question)).await;
    (armed, provider)
}

async fn supervisor(provider: &Provider, second: Option<&Provider>) -> Supervisor {
    let timeouts = "timeouts: { first_token: 500ms, between: 500ms, total: 1s }";
    let more = "tier: mid, context_window: 128000, tools: true, free: true";
    let mut providers =
        format!("    local: {{ kind: openai, base_url: \"{}\", {timeouts} }}\n", provider.url());
    let mut catalog = format!("    local/test: {{ {more} }}\n");
    let mut fallback = "retries: 1, backoff_initial: 10ms, backoff_max: 20ms, jitter: 1ms".to_owned();
    match second {
        None => fallback.push_str(", rate_limit_rest: 10ms"),
        Some(second) => {
            writeln!(providers, "    other: {{ kind: openai, base_url: \"{}\" }}", second.url())
                .expect("a text");
            writeln!(catalog, "    {SECOND}: {{ {more} }}").expect("a text takes all");
            // So that the first is asked at each point.
            fallback.push_str(", breaker: { failures: 1000 }");
        }
    }
    let builder = Builder::new().plugin("hello", &example("hello"), &[], "");
    let config = format!(
        "agent:\n  enabled: true\n  turn: {{ wall_time: 5s }}\n  context: {{ profile: frugal }}\n  subagents: {{ wall_time: 5s }}\n\
         models:\n  fallback: {{ {fallback} }}\n  providers:\n{providers}  catalog:\n{catalog}"
    );
    builder.config(&config).start().await
}

/// A session in which the next question makes a summary, if that is the point; otherwise a new one.
async fn seed(supervisor: &Supervisor, point: Point) -> String {
    let mut session = String::new();
    if point == Point::Summary {
        for turn in 0..4 {
            let long = format!("Turn {turn}. {}", point.question());
            let more: Vec<&str> =
                if session.is_empty() { Vec::new() } else { vec!["--session", session.as_str()] };
            let asked = ask(supervisor, &long, &more).await;
            assert_eq!(asked.code, Some(0), "{asked:?}");
            asked.text("session_id").clone_into(&mut session);
        }
    }
    session
}

/// Tries all faults, some at once; the rows in the order of the faults.
async fn try_all<R, F>(
    with_second: bool,
    strike: impl Fn(&'static str, ScriptedReply) -> F,
) -> Vec<(&'static str, R)>
where
    R: Send + 'static,
    F: Future<Output = R> + Send + 'static,
{
    let mut rows = BTreeMap::new();
    let mut waiting = faults(with_second).into_iter().enumerate();
    let mut running = JoinSet::new();
    loop {
        while running.len() < AT_ONCE
            && let Some((place, (name, fault))) = waiting.next()
        {
            let struck = strike(name, fault);
            running.spawn(async move { (place, (name, struck.await)) });
        }
        let Some(done) = running.join_next().await else { return rows.into_values().collect() };
        let (place, row) = done.expect("no panic");
        rows.insert(place, row);
    }
}

/// Compares one table with that of the page, or writes it there.
fn check_page(table: Table, rows: &str) {
    let template = include_str!("agent_provider_faults.md");
    let (head, rest) = template.split_once("{alone}").expect("a place for the first table");
    let (middle, tail) = rest.split_once("{second}").expect("a place for the second table");
    let path = repository().join(PAGE);
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let tables = written.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail)?.split_once(middle));
    let (alone, second) = tables.unwrap_or_default();
    let page = match table {
        Table::Alone => format!("{head}{rows}{middle}{second}{tail}"),
        Table::WithSecond => format!("{head}{alone}{middle}{rows}{tail}"),
    };
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
        return;
    }
    assert!(written == page, "{PAGE} is old: run these tests with {REWRITE}=1 and -j 1\n{page}");
}

#[derive(Debug, Clone, Copy)]
enum Table {
    Alone,
    WithSecond,
}

// Promises: AGENT-101
#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_what_comes_of_each_fault_at_each_point() {
    let mut table = String::new();
    for (name, row) in try_all(false, strike).await {
        for (times, place) in [("once", 0), ("every time", 1)] {
            let cells: Vec<&str> = row.iter().map(|cells| cells[place].as_str()).collect();
            writeln!(table, "| {name} | {times} | {} |", cells.join(" | ")).expect("a text takes all");
        }
    }
    check_page(Table::Alone, &table);
}

// Promises: AGENT-104
#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_what_a_second_provider_does() {
    let mut table = String::new();
    for (name, cells) in try_all(true, strike_first_of_two).await {
        writeln!(table, "| {name} | {} |", cells.join(" | ")).expect("a text takes all");
    }
    check_page(Table::WithSecond, &table);
}
