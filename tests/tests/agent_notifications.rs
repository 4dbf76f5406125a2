//! Notifications through a real supervisor, agent and plugin: from the configuration to `talon notification`, over
//! kills of the agent.

use std::collections::{BTreeMap, BTreeSet};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talon_proto::host::AgentStatus;
use talon_tests::ask::ask;
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Postgres, Supervisor, skip};

/// How often the agent is killed.
const KILLS: usize = 10;
/// With what the sink's lines begin.
const MARK: &str = "TOLD";

/// A sink that writes a line for each attempt, and answers as this says.
fn sink(answer: &str, more: &str) -> String {
    format!(
        "[{{ on: [plugin.*], name: ops, action: misbehave.log, {more}\n      args: {{ text: '{MARK} {{{{ event.id }}}} {{{{ attempt }}}}', \
         ms: 50, json: \"{answer}\" }} }}]"
    )
}

async fn serving(entries: &str) -> Supervisor {
    let config = format!("agent:\n  enabled: true\nextensions:\n  notifications: {entries}\n");
    let supervisor = Builder::new().misbehave(&[], "").config(&config).start().await;
    supervisor.wait_agent("an agent that serves", serves).await;
    supervisor
}

fn serves(agent: &AgentStatus) -> bool {
    agent.state == "serving"
}

/// A verb's exit code and JSON.
async fn run(supervisor: &Supervisor, args: &[&str]) -> (Option<i32>, Value) {
    let output = supervisor.cli(&[&["notification"], args, &["--output", "json"]].concat()).await;
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), json)
}

/// All notifications, oldest first. None while the agent is away.
async fn list(supervisor: &Supervisor) -> Vec<Value> {
    let (_, listed) = run(supervisor, &["list", "--limit", "100000"]).await;
    let mut all = listed["notifications"].as_array().cloned().unwrap_or_default();
    all.reverse();
    all
}

async fn until(supervisor: &Supervisor, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    supervisor.client.wait_until(what, async |_| wanted(&list(supervisor).await)).await;
    list(supervisor).await
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The attempts of each id that reached the sink.
async fn told(supervisor: &Supervisor) -> BTreeMap<String, Vec<u64>> {
    let output = supervisor.cli(&["plugin", "logs", "misbehave", "--tail", "1000"]).await;
    let mut told = BTreeMap::<String, Vec<u64>>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((_, said)) = line.split_once(&format!("{MARK} ")) else { continue };
        let (id, attempt) = said.trim().split_once(' ').expect("an id and an attempt");
        told.entry(id.to_owned()).or_default().push(attempt.parse().expect("a number"));
    }
    told
}

// Promises: EXT-58, EXT-59, EXT-60
#[tokio::test]
async fn a_sink_that_fails_three_times_gets_one_id_and_then_accepts() {
    let answer = "{{ '{\\\"status\\\":\\\"retry\\\",\\\"reason\\\":\\\"busy\\\"}' if attempt < 4 else '{\\\"status\\\":\\\"delivered\\\"}' }}";
    let supervisor = serving(&sink(answer, "")).await;
    let (code, first) = run(&supervisor, &["test", "ops"]).await;
    assert_eq!(
        (code, &first["state"], &first["note"]),
        (Some(1), &"waiting".into(), &"busy".into()),
        "{first}"
    );
    let id = text(&first["id"]);
    for attempt in 2..=4 {
        let (code, _) = run(&supervisor, &["retry", &id]).await;
        assert_eq!(code, Some(0));
        until(&supervisor, "the next attempt", |all| {
            all[0]["attempt"] == attempt && all[0]["state"] != "sending"
        })
        .await;
    }
    let all = list(&supervisor).await;
    assert_eq!((all.len(), &all[0]["state"]), (1, &"delivered".into()));
    assert_eq!(told(&supervisor).await, BTreeMap::from([(id.clone(), vec![1, 2, 3, 4])]));
    let (code, again) = run(&supervisor, &["test", "ops"]).await;
    assert_eq!((code, &again["state"]), (Some(1), &"waiting".into()), "each notification begins anew");
    let wrong = supervisor.cli(&["notification", "test", "opps"]).await;
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean ops?"), "{wrong:?}");
    supervisor.stop().await;
}

// Promises: EXT-59
#[tokio::test]
async fn what_is_given_up_is_shown_and_tried_again_by_wish() {
    let answer = "{{ '{\\\"status\\\":\\\"retry\\\",\\\"reason\\\":\\\"no route\\\"}' if attempt == 1 else '{\\\"status\\\":\\\"delivered\\\"}' }}";
    let supervisor = serving(&sink(answer, "retries: 0,")).await;
    let (code, first) = run(&supervisor, &["test", "ops"]).await;
    assert_eq!((code, &first["state"], &first["note"]), (Some(1), &"given_up".into(), &"no route".into()));
    let (_, given_up) = run(&supervisor, &["list", "--state", "given_up"]).await;
    assert_eq!(given_up["notifications"].as_array().map(Vec::len), Some(1), "{given_up}");
    let (code, again) = run(&supervisor, &["retry", "--all"]).await;
    assert_eq!((code, again["notifications"].as_u64()), (Some(0), Some(1)), "{again}");
    until(&supervisor, "the delivery", |all| all[0]["state"] == "delivered").await;
    supervisor.stop().await;
}

// Promises: EXT-57
#[tokio::test]
async fn an_agent_that_is_killed_loses_nothing_and_keeps_each_id() {
    let supervisor = serving(&sink("{{ '{\\\"status\\\":\\\"delivered\\\"}' }}", "")).await;
    let mut kept = BTreeSet::new();
    for round in 0..KILLS {
        let agent = supervisor.wait_agent("an agent that serves", serves).await;
        let seen = told(&supervisor).await.len();
        // Some in the middle of their way when the agent is killed; who is told an id by then, is owed a delivery.
        let tests =
            async { tokio::join!(run(&supervisor, &["test", "ops"]), run(&supervisor, &["test", "ops"])) };
        let killed = async {
            if round % 2 == 0 {
                supervisor
                    .client
                    .wait_until("an attempt", async |_| told(&supervisor).await.len() > seen)
                    .await;
            }
            kill(Pid::from_raw(agent.pid.try_into().expect("a pid")), Signal::SIGKILL).expect("it runs");
        };
        let ((one, two), ()) = tokio::join!(tests, killed);
        kept.extend([one, two].into_iter().filter_map(|(_, sent)| sent["id"].as_str().map(str::to_owned)));
        supervisor.wait_agent("another agent", |now| serves(now) && now.pid != agent.pid).await;
    }
    let all = until(&supervisor, "all delivered", |all| {
        !all.is_empty() && all.iter().all(|one| one["state"] == "delivered")
    })
    .await;
    let ids: BTreeSet<String> = all.iter().map(|one| text(&one["id"])).collect();
    assert!(kept.is_subset(&ids), "{kept:?} {ids:?}");
    let told: BTreeSet<String> = told(&supervisor).await.into_keys().collect();
    assert_eq!(told, ids, "each with the id that is kept, and no other");
    supervisor.stop().await;
}

/// A rule whose sink writes the kind and a field of each event.
fn telling(kinds: &str, field: &str) -> String {
    format!(
        "[{{ on: [{kinds}], name: ops, action: misbehave.log,\n      args: {{ text: '{MARK} {{{{ event.kind }}}} {{{{ event.fields.{field} }}}}', \
         json: '{{\"status\":\"delivered\"}}' }} }}]"
    )
}

// Promises: EXT-178
#[tokio::test]
async fn a_job_that_fails_for_good_is_told_to_a_sink() {
    let entries = telling("schedule.failed", "job");
    let jobs = "\n  schedule:\n    - { id: paper, at: '2199-01-01T00:00:00Z', action: misbehave.error, args: { text: no paper }, retries: 0 }";
    let supervisor = serving(&format!("{entries}{jobs}")).await;
    let ran = supervisor.cli(&["schedule", "run", "paper"]).await;
    assert!(ran.status.success(), "{ran:?}");
    supervisor.client.wait_log("misbehave", &format!("{MARK} schedule.failed paper")).await;
    let all =
        until(&supervisor, "the delivery", |all| all.len() == 1 && all[0]["state"] == "delivered").await;
    assert!(text(&all[0]["summary"]).contains("paper"), "{all:?}");
    supervisor.stop().await;
}

// Promises: EXT-178
#[tokio::test]
async fn a_sub_agents_task_that_fails_is_told_to_a_sink() {
    let provider = Provider::responding(|question| {
        let last = question["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let said = last["content"].as_str().unwrap_or_default();
        match last["role"].as_str() {
            Some("tool") => ScriptedReply::Text("It failed.".to_owned()),
            _ if said.contains("count the stars") => {
                ScriptedReply::Raw(400, "application/json", r#"{"error": {"message": "no"}}"#.to_owned())
            }
            _ => ScriptedReply::ToolCalls(vec![(
                "subagent__run".to_owned(),
                json!({"agent": "ResearchAgent", "task": "count the stars"}),
            )]),
        }
    })
    .await;
    let url = provider.url();
    let config = format!(
        "agent:\n  enabled: true\n  confirm: {{ default: never }}\nmodels:\n  providers:\n    local: {{ kind: openai, base_url: \"{url}\" }}\n  catalog:\n    \
         local/test: {{ tier: mid, context_window: 128000, tools: true, free: true }}\nextensions:\n  notifications: {}\n",
        telling("task.failed", "subagent")
    );
    let supervisor = Builder::new().misbehave(&[], "").config(&config).start().await;
    supervisor.wait_agent("an agent that serves", serves).await;
    let asked = ask(&supervisor, "How many stars are there?", &[]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    supervisor.client.wait_log("misbehave", &format!("{MARK} task.failed ResearchAgent")).await;
    supervisor.stop().await;
}

// Promises: EXT-178
#[tokio::test]
async fn a_database_that_cannot_be_reached_is_told_to_a_sink_and_so_is_its_return() {
    let test = "a_database_that_cannot_be_reached_is_told_to_a_sink_and_so_is_its_return";
    let mut server = match Postgres::prepare() {
        Ok(server) => server,
        Err(reason) => return skip(test, reason),
    };
    server.run();
    // The agent's own database is another one, so that it can tell.
    let state = format!("engine: sqlite\nurl: {}\nplugins: {{ engine: postgres }}", server.url());
    let config = format!(
        "agent:\n  enabled: true\nextensions:\n  notifications: {}\n",
        telling("\"state.*\"", "reason")
    );
    let supervisor = Builder::new().misbehave(&[], "").state(&state).config(&config).start().await;
    supervisor.wait_agent("an agent that serves", serves).await;
    supervisor.wait_state_service("a server that answers", |now| now.state == "serving").await;
    server.stop();
    supervisor
        .client
        .wait_until("an error", async |client| {
            let answer = client.call("misbehave", "state", &[("op", "get"), ("key", "k")]).await;
            answer.error.starts_with("Unavailable")
        })
        .await;
    supervisor.client.wait_log("misbehave", &format!("{MARK} state.unavailable")).await;
    server.run();
    supervisor.client.wait_log("misbehave", &format!("{MARK} state.available")).await;
    supervisor.stop().await;
}
