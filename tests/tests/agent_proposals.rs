//! Jobs that plugins propose, through real supervisors: proposed, accepted, rejected, changed, and gone.

use serde_json::{Value, json};
use talon_proto::host::AgentStatus;
use talon_tests::{Builder, Supervisor};

/// A supervisor with an agent without models, and `misbehave` with these arguments.
fn proposing(builder: Builder, args: &[&str], extensions: &str) -> Builder {
    builder.misbehave(args, "").config(&format!("agent:\n  enabled: true\n{extensions}"))
}

async fn serving(builder: Builder) -> Supervisor {
    let supervisor = builder.start().await;
    supervisor.wait_agent("an agent that serves", |agent: &AgentStatus| agent.state == "serving").await;
    supervisor
}

/// Starts anew on what another left, with other arguments of the plugin.
async fn restarted(supervisor: Supervisor, args: &[&str]) -> Supervisor {
    let stopped = supervisor.stop().await;
    serving(proposing(Builder::on_leftovers(stopped.left), args, "")).await
}

async fn schedule(supervisor: &Supervisor, args: &[&str]) -> Value {
    let output = supervisor.cli(&[&["schedule"], args, &["--output", "json"]].concat()).await;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// What a verb says that fails.
async fn refused(supervisor: &Supervisor, args: &[&str]) -> String {
    let output = supervisor.cli(&[&["schedule"], args].concat()).await;
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The open proposals as `job state when`.
async fn proposals(supervisor: &Supervisor) -> Vec<String> {
    let listed = schedule(supervisor, &["list"]).await;
    let all = listed["proposals"].as_array().unwrap_or_else(|| panic!("{listed}")).iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    all.map(|one| format!("{} {} {}", text(&one["job"]), text(&one["state"]), text(&one["when"]))).collect()
}

async fn until_proposed(supervisor: &Supervisor, wanted: &[&str]) {
    let what = format!("the proposals {wanted:?}");
    supervisor.client.wait_until(&what, async |_| proposals(supervisor).await == wanted).await;
}

async fn jobs(supervisor: &Supervisor) -> Vec<String> {
    let listed = schedule(supervisor, &["list"]).await;
    let all = listed["jobs"].as_array().expect("a list").iter();
    all.map(|job| {
        format!("{} {}", job["id"].as_str().expect("a text"), job["when"].as_str().expect("a text"))
    })
    .collect()
}

/// The runs of a job, oldest first.
async fn runs(supervisor: &Supervisor, job: &str) -> Vec<Value> {
    let all = schedule(supervisor, &["history", "--limit", "1000"]).await;
    let mut all = all["occurrences"].as_array().expect("a list").clone();
    all.retain(|run| run["job"] == job);
    all.reverse();
    all
}

/// The operations of the audit log, as `verb subject outcome role`.
async fn operations(supervisor: &Supervisor) -> Vec<String> {
    let output = supervisor.cli(&["audit", "show", "--output", "json"]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record a line"));
    let words = |record: Value| {
        let parts = [&record["verb"], &record["subject"], &record["outcome"], &record["who"]["role"]];
        parts.map(|part| part.as_str().unwrap_or_default().to_owned()).join(" ")
    };
    records.filter(|record| record["kind"] == "operation").map(words).collect()
}

// Promises: EXT-160, EXT-161, EXT-162, EXT-166
#[tokio::test]
async fn a_proposed_job_runs_once_it_is_accepted_and_is_recorded() {
    let job = r#"tick:1s:{"text": "run {{ run.attempt }}"}"#;
    let supervisor = serving(proposing(Builder::new(), &["--propose", job], "")).await;
    until_proposed(&supervisor, &["misbehave.tick proposed every 1s"]).await;
    let listed = schedule(&supervisor, &["list"]).await;
    let proposal = &listed["proposals"][0];
    assert_eq!(
        (&proposal["action"], &proposal["timezone"], &proposal["arguments_json"]),
        (&json!("misbehave.task"), &json!("UTC"), &json!(r#"{"text":"run {{ run.attempt }}"}"#))
    );
    let hash = proposal["hash"].as_str().expect("a text").to_owned();
    assert_eq!(hash.len(), 64);
    let shown = supervisor.cli(&["schedule", "list"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("none of these runs") && shown.contains("talon schedule accept misbehave.tick"),
        "{shown}"
    );
    let status = supervisor.cli(&["status"]).await;
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("scheduled_task") && status.contains("not granted"), "{status}");

    // Seconds pass and nothing has run: another look at the times would have planned one.
    assert!(runs(&supervisor, "misbehave.tick").await.is_empty());
    let wrong = refused(&supervisor, &["accept", "misbehave.tick", "--hash", &"0".repeat(64)]).await;
    assert!(wrong.contains("not proposed with this hash"), "{wrong}");
    let wrong = refused(&supervisor, &["accept", "misbehave.tik"]).await;
    assert!(wrong.contains("did you mean misbehave.tick?"), "{wrong}");
    assert!(runs(&supervisor, "misbehave.tick").await.is_empty());

    let accepted = schedule(&supervisor, &["accept", "misbehave.tick", "--hash", &hash]).await;
    assert_eq!((&accepted["state"], &accepted["hash"]), (&json!("accepted"), &json!(hash)));
    supervisor
        .client
        .wait_until("two runs", async |_| {
            let runs = runs(&supervisor, "misbehave.tick").await;
            runs.iter().filter(|run| run["state"] == "done").count() >= 2
        })
        .await;
    schedule(&supervisor, &["pause", "misbehave.tick"]).await;
    let all = runs(&supervisor, "misbehave.tick").await;
    let run = all.iter().find(|run| run["state"] == "done").expect("it is there");
    let said: Value = serde_json::from_str(run["result"].as_str().expect("a text")).expect("its arguments");
    assert_eq!((&said["text"], &said["run"]["job"]), (&json!("run 1"), &json!("misbehave.tick")), "{run}");
    let mut times: Vec<u64> = all.iter().filter_map(|run| run["planned_unix_ms"].as_u64()).collect();
    let planned = times.len();
    times.dedup();
    assert_eq!(times.len(), planned, "each planned time is there once");

    let rejected = schedule(&supervisor, &["reject", "misbehave.tick"]).await;
    assert_eq!(rejected["state"], "rejected");
    assert_eq!(jobs(&supervisor).await, [] as [&str; 0]);
    assert_eq!(proposals(&supervisor).await, ["misbehave.tick rejected every 1s"]);
    let recorded = |verb: &str| format!("{verb} misbehave.tick sha256:{hash} done admin");
    supervisor
        .client
        .wait_until("the records of both decisions", async |_| {
            let all = operations(&supervisor).await;
            all.contains(&recorded("accept_job")) && all.contains(&recorded("reject_job"))
        })
        .await;
    assert!(supervisor.stop().await.processes.is_empty());
}

// Promises: EXT-160, EXT-161, EXT-164
#[tokio::test]
async fn decisions_outlast_restarts_changes_and_the_plugin_itself() {
    let first = ["--propose", "tick:1s", "--propose", "late:300d"];
    let supervisor = serving(proposing(Builder::new(), &first, "")).await;
    until_proposed(&supervisor, &["misbehave.late proposed every 300d", "misbehave.tick proposed every 1s"])
        .await;
    schedule(&supervisor, &["reject", "misbehave.late"]).await;
    // The agent and the supervisor begin anew, and the proposal waits.
    let supervisor = restarted(supervisor, &first).await;
    until_proposed(&supervisor, &["misbehave.late rejected every 300d", "misbehave.tick proposed every 1s"])
        .await;
    assert!(jobs(&supervisor).await.is_empty());
    schedule(&supervisor, &["accept", "misbehave.tick"]).await;

    // It changes: the old one goes on, and the new one waits. A text that was rejected is proposed again once it changes.
    let changed = ["--propose", "tick:2s", "--propose", "late:200d"];
    let supervisor = restarted(supervisor, &changed).await;
    until_proposed(&supervisor, &["misbehave.late proposed every 200d", "misbehave.tick proposed every 2s"])
        .await;
    assert_eq!(jobs(&supervisor).await, ["misbehave.tick every 1s"]);
    let before = runs(&supervisor, "misbehave.tick").await.len();
    supervisor
        .client
        .wait_until("a run of the old text", async |_| {
            let all = runs(&supervisor, "misbehave.tick").await;
            all.len() > before && all.last().is_some_and(|run| run["state"] == "done")
        })
        .await;
    schedule(&supervisor, &["accept", "misbehave.tick"]).await;
    assert_eq!(jobs(&supervisor).await, ["misbehave.tick every 2s"]);

    // The plugin proposes it no more: what was accepted fails where people see it.
    let supervisor = restarted(supervisor, &["--propose", "other:300d"]).await;
    until_proposed(&supervisor, &["misbehave.other proposed every 300d"]).await;
    let listed = schedule(&supervisor, &["list"]).await;
    let problem = listed["jobs"][0]["problem"].as_str().expect("a text");
    assert!(problem.contains("talon schedule reject misbehave.tick"), "{listed}");
    supervisor
        .client
        .wait_until("a run that failed", async |_| {
            let all = runs(&supervisor, "misbehave.tick").await;
            let failed = |run: &Value| {
                run["note"].as_str().is_some_and(|note| note.contains("does not propose this job"))
            };
            all.iter().any(failed)
        })
        .await;
    schedule(&supervisor, &["reject", "misbehave.tick"]).await;
    assert!(jobs(&supervisor).await.is_empty());
    supervisor.stop().await;
}

// Promises: EXT-159, EXT-160, EXT-163
#[tokio::test]
async fn a_flood_is_bounded_and_a_name_of_the_configuration_stays_its_own() {
    let extensions = "extensions:\n  schedule: [{ id: misbehave.mine, at: '2199-01-01T00:00:00Z', action: misbehave.echo, args: { text: x } }]\n";
    let args = ["--propose", "mine:1s", "--propose", "bad:soon", "--propose-many", "5000"];
    let supervisor = serving(proposing(Builder::new(), &args, extensions)).await;
    let of_state = async |state: &str| {
        let listed = schedule(&supervisor, &["list"]).await;
        let all = listed["proposals"].as_array().expect("a list").clone();
        all.into_iter().filter(|one| one["state"] == state).collect::<Vec<_>>()
    };
    supervisor.client.wait_until("what is proposed", async |_| of_state("proposed").await.len() == 15).await;
    let invalid = of_state("invalid").await;
    let problems: Vec<&str> = invalid.iter().filter_map(|one| one["problem"].as_str()).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems.iter().any(|says| says.contains("proposes 5002 jobs, and 16 are the most")),
        "{problems:?}"
    );
    assert!(problems.iter().any(|says| says.contains("\"soon\" is no interval")), "{problems:?}");
    let taken = refused(&supervisor, &["accept", "misbehave.mine"]).await;
    assert!(taken.contains("the configuration has a job misbehave.mine"), "{taken}");
    assert_eq!(jobs(&supervisor).await, ["misbehave.mine at 2199-01-01T00:00:00Z"]);
    let ours = refused(&supervisor, &["reject", "misbehave.bad"]).await;
    assert!(ours.contains("is no interval"), "{ours}");
    supervisor.stop().await;
}
