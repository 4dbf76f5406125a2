//! Jobs at planned times, through real supervisors: from the configuration to `talon schedule`, over kills of
//! the supervisor, and with two of them on one database.

use nix::sys::signal::Signal;
use serde_json::Value;
use talon_proto::host::AgentStatus;
use talon_tests::{Builder, Postgres, Supervisor, kills, skip};

/// How often the supervisor is killed.
const KILLS: usize = 3;

/// An agent whose model always says the same.
fn scripted(builder: Builder, schedule: &str) -> Builder {
    let script = serde_json::json!({ "answers": [{ "say": "All is well." }] });
    let script = builder.scratch().write("script.yaml", &script.to_string());
    builder.config(&format!(
        "agent:\n  enabled: true\nmodels:\n  providers:\n    scripted: {{ kind: scripted, file: {} }}\n  catalog:\n    \
         scripted/demo: {{ tier: mid, context_window: 128000, tools: true, free: true }}\nextensions:\n  schedule: {schedule}\n",
        script.display()
    ))
}

fn serves(agent: &AgentStatus) -> bool {
    agent.state == "serving"
}

async fn serving(builder: Builder) -> Supervisor {
    let supervisor = builder.start().await;
    supervisor.wait_agent("an agent that serves", serves).await;
    supervisor
}

async fn json(supervisor: &Supervisor, args: &[&str]) -> Value {
    let output = supervisor.cli(&[&["schedule"], args, &["--output", "json"]].concat()).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// All occurrences, oldest first.
async fn history(supervisor: &Supervisor) -> Vec<Value> {
    let all = json(supervisor, &["history", "--limit", "100000"]).await;
    let mut all = all["occurrences"].as_array().expect("a list").clone();
    all.reverse();
    all
}

fn planned(occurrence: &Value) -> u64 {
    occurrence["planned_unix_ms"].as_u64().expect("a number")
}

fn is(occurrence: &Value, state: &str) -> bool {
    occurrence["state"] == state
}

/// Looks at the history until it is as wanted.
async fn until(supervisor: &Supervisor, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    supervisor.client.wait_until(what, async |_| wanted(&history(supervisor).await)).await;
    history(supervisor).await
}

/// The number of questions in the conversation of a run.
async fn questions(supervisor: &Supervisor, occurrence: &Value) -> usize {
    let session = occurrence["session_id"].as_str().expect("a text");
    let output = supervisor.cli(&["session", "show", session, "--output", "json"]).await;
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let messages = said["messages"].as_array().unwrap_or_else(|| panic!("{said}"));
    messages.iter().filter(|message| message["role"] == "user").count()
}

/// Each second from the first to the last is there once, and each run asked once.
async fn check(supervisor: &Supervisor, all: &[Value], until: u64) {
    let runs: Vec<&Value> = all.iter().filter(|run| planned(run) <= until).collect();
    assert!(runs.iter().filter(|run| is(run, "done")).count() >= 3, "{runs:?}");
    for pair in runs.windows(2) {
        assert_eq!(
            planned(pair[1]) - planned(pair[0]),
            1000,
            "no second is left out, and none is there twice"
        );
    }
    for run in runs {
        match run["state"].as_str().expect("a word") {
            "done" => assert_eq!(questions(supervisor, run).await, 1, "{run}"),
            // On a machine that was too slow.
            "missed" => assert_eq!(run["attempt"], 0, "{run}"),
            other => panic!("{other}: {run}"),
        }
    }
}

const EVERY_SECOND: &str =
    "[{ id: tick, every: 1s, missed: all, missed_max: 100, overlap: queue, ask: Is all well? }]";

// Promises: EXT-38, EXT-39
#[tokio::test]
async fn a_schedule_is_configured_seen_and_operated() {
    let schedule = "[{ id: tick, every: 1s, ask: Is all well? }, { id: later, at: '2199-01-01T00:00', timezone: Europe/Berlin, ask: Still? }]";
    let supervisor = serving(scripted(Builder::new(), schedule)).await;
    until(&supervisor, "a run", |all| all.iter().any(|run| is(run, "done"))).await;
    let jobs = json(&supervisor, &["list"]).await;
    assert_eq!((&jobs["jobs"][0]["id"], &jobs["jobs"][0]["timezone"]), (&"later".into(), &"UTC".into()));
    assert_eq!(jobs["jobs"][0]["when"], "at 2198-12-31T23:00:00Z");
    let next = json(&supervisor, &["next"]).await;
    assert_eq!(next["jobs"][0]["id"], "tick");
    assert_eq!(json(&supervisor, &["pause", "tick"]).await["paused"], true);
    let run = json(&supervisor, &["run", "later"]).await;
    until(&supervisor, "a run by hand", |all| {
        all.iter().any(|row| row["kind"] == "manual" && is(row, "done") && planned(row) == planned(&run))
    })
    .await;
    assert_eq!(json(&supervisor, &["resume", "tick"]).await["paused"], false);
    let wrong = supervisor.cli(&["schedule", "run", "tik"]).await;
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean tick?"), "{wrong:?}");
    assert!(supervisor.stop().await.processes.is_empty());
}

// Promises: EXT-31, EXT-33
#[tokio::test]
async fn a_wrong_schedule_is_refused_when_the_configuration_is_read() {
    let schedule = "[{ id: a, cron: 0 0 30 2 *, ask: x }, { id: b, every: 1h, timezone: UTC, ask: x }, { id: c, cron: '@daily', timezone: Europe/Berln, ask: x }]";
    let refused = scripted(Builder::new(), schedule).start_refused().await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    for expected in [
        "there is no day 30 in February",
        "it belongs to `cron` and `at`",
        "did you mean Europe/Berlin?",
        "extensions.schedule",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

// Promises: EXT-37
#[tokio::test]
async fn a_supervisor_that_is_killed_leaves_no_planned_time_out_and_runs_none_twice() {
    let mut supervisor = serving(scripted(Builder::new(), EVERY_SECOND)).await;
    let mut last = 0;
    for _ in 0..kills(KILLS) {
        let seen = until(&supervisor, "a later run", |all| all.iter().any(|run| planned(run) > last)).await;
        last = seen.iter().map(planned).max().expect("some");
        let stopped = supervisor.end(Signal::SIGKILL).await;
        supervisor = serving(scripted(Builder::on_leftovers(stopped.left), EVERY_SECOND)).await;
    }
    let over = |run: &Value| planned(run) > last || is(run, "done") || is(run, "missed");
    let all = until(&supervisor, "the end of all runs", |all| {
        all.iter().all(over) && all.iter().any(|run| planned(run) > last)
    })
    .await;
    check(&supervisor, &all, last).await;
    supervisor.stop().await;
}

// Promises: EXT-37
#[tokio::test]
async fn two_supervisors_on_one_database_run_each_planned_time_once() {
    let test = "two_supervisors_on_one_database_run_each_planned_time_once";
    let mut server = match Postgres::prepare() {
        Ok(server) => server,
        Err(reason) => return skip(test, reason),
    };
    server.run();
    let state = format!("engine: postgres\nurl: {}", server.url());
    let start = || scripted(Builder::new().state(&state), EVERY_SECOND);
    let one = serving(start()).await;
    let two = serving(start()).await;
    let since = history(&one).await.iter().map(planned).max().unwrap_or(0);
    let shared = until(&one, "runs with both", |all| {
        all.iter().filter(|run| planned(run) > since && is(run, "done")).count() >= 5
    })
    .await;
    // One of them is killed, and the other goes on, also with what the first one had begun.
    one.end(Signal::SIGKILL).await;
    let last = shared.iter().map(planned).max().expect("some") + 2000;
    let over = |run: &Value| planned(run) > last || is(run, "done") || is(run, "missed");
    let wanted = |all: &[Value]| all.iter().all(over) && all.iter().any(|run| planned(run) > last);
    // A claim of the one that was killed holds for a minute.
    let deadline = std::time::Duration::from_secs(180);
    let all = tokio::time::timeout(deadline, async {
        loop {
            let all = history(&two).await;
            if wanted(&all) {
                return all;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    });
    let all = all.await.unwrap_or_else(|_| panic!("{}", two.log()));
    check(&two, &all, last).await;
    two.stop().await;
}

// Promises: EXT-85, EXT-86, EXT-87
#[tokio::test]
async fn a_job_calls_an_action_and_its_answer_is_in_the_history() {
    let schedule = "
    - { id: tick, every: 1s, action: misbehave.structured, args: { json: '{\"job\": \"{{ run.job }}\"}', text: 'run {{ run.attempt }}' } }
    - { id: typo, at: '2199-01-01T00:00:00Z', action: misbehave.structred, args: { text: x } }
    - { id: error, at: '2199-01-01T00:00:00Z', action: misbehave.error, args: { text: no paper }, retries: 1, retry_after: 1s }";
    let supervisor = serving(scripted(Builder::new().misbehave(&[], ""), schedule)).await;
    let done = |all: &[Value]| all.iter().any(|run| run["job"] == "tick" && is(run, "done"));
    let all = until(&supervisor, "a run", done).await;
    let run = all.iter().find(|run| run["job"] == "tick" && is(run, "done")).expect("it is there");
    assert_eq!((run["result"].as_str(), run["attempt"].as_u64()), (Some("run 1"), Some(1)), "{run}");
    let structured = run["structured_result_json"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(structured).expect("JSON"), serde_json::json!({"job": "tick"}));
    json(&supervisor, &["pause", "tick"]).await;

    let listed = supervisor.cli(&["extension", "list", "--output", "json"]).await;
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let entry = |name: &str| {
        let all = listed["extensions"].as_array().expect("a list");
        all.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("{listed}")).clone()
    };
    assert_eq!(
        (&entry("tick")["role"], &entry("tick")["state"]),
        (&"scheduled_task".into(), &"ready".into())
    );
    assert_eq!(entry("typo")["state"], "failing", "{listed}");
    for (job, says) in [("typo", "did you mean structured?"), ("error", "no paper")] {
        json(&supervisor, &["run", job]).await;
        let failed = |all: &[Value]| all.iter().any(|run| run["job"] == job && is(run, "failed"));
        let all = until(&supervisor, "the end of a run by hand", failed).await;
        let run = all.iter().find(|run| run["job"] == job && is(run, "failed")).expect("it is there");
        assert!(run["note"].as_str().expect("a text").contains(says), "{run}");
        assert_eq!(run["attempt"], if job == "error" { 2 } else { 1 }, "{run}");
    }
    assert!(supervisor.stop().await.processes.is_empty());
}

// Promises: EXT-85
#[tokio::test]
async fn an_action_that_cannot_be_is_refused_when_the_configuration_is_read() {
    let schedule = "[{ id: a, every: 1h, ask: x, action: misbehave.echo }, { id: c, every: 1h, action: misbehave.echo, args: { text: '{{ run.jb }}' } }, { id: d, every: 1h, action: misbehave.echo, session: x }]";
    let refused = scripted(Builder::new().misbehave(&[], ""), schedule).start_refused().await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    for expected in ["write exactly one of `ask` and `action`", "it belongs to `ask`"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let schedule = "[{ id: b, every: 1h, action: misbehave.echo }, { id: c, every: 1h, action: misbehave.echo, args: { text: '{{ run.jb }}' } }]";
    let refused = scripted(Builder::new().misbehave(&[], ""), schedule).start_refused().await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    for expected in ["there is no value run.jb", "extensions.schedule[1].args"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
