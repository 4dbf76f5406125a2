//! Plugins that ask models over their own sockets: real processes and a provider on loopback.

mod bounds;
mod go;

use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use talon_proto::agent::{GetCostsRequest, GetCostsResponse};
use talon_tests::ask::{AskResult, ask};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::test_agent::TestAgent;
use talon_tests::{Builder, Supervisor};

/// How often a condition is looked at.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
/// Looks until a test fails: about a minute.
const LOOKS: usize = 1200;

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

/// A provider that has a turn call `misbehave.complete` with these arguments, tells in its last answer what the
/// call brought, and replies to prompts of plugins, which begin with `P:`, by `reply`.
async fn provider_calling(
    arguments: Value,
    reply: impl Fn(&str) -> ScriptedReply + Send + Sync + 'static,
) -> Provider {
    Provider::responding(move |question| {
        let last = question["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let text = last["content"].as_str().unwrap_or_default().to_owned();
        match last["role"].as_str() {
            Some("tool") => says(&format!("the tool: {text}")),
            _ if text.starts_with("P:") => reply(&text),
            _ => {
                let mut arguments = arguments.clone();
                // Two turns at once ask different things.
                if let Some(name) = text.strip_prefix("turn ") {
                    arguments["prompt"] = json!(format!("P:{name}"));
                }
                ScriptedReply::ToolCalls(vec![("misbehave__complete".to_owned(), arguments)])
            }
        }
    })
    .await
}

fn repeats(prompt: &str) -> ScriptedReply {
    says(&format!("<{prompt}>"))
}

/// An agent whose turns are asked of a free model, while plugins' completions cost a dollar for 100 tokens.
fn with_models(builder: Builder, provider: &Provider, more: &str) -> Builder {
    let url = provider.url();
    builder.config(&format!(
        "agent:\n  enabled: true\n  confirm: {{ default: never }}\n{more}\nmodels:\n  default: local/test\n  providers:\n    local: {{ kind: openai, base_url: \"{url}\" }}\n    \
         far: {{ kind: openai, base_url: \"{url}\", local: false }}\n  \
         catalog:\n    local/test: {{ tier: mid, context_window: 128000, tools: true, free: true }}\n    \
         local/priced: {{ alias: priced, tier: cheap, context_window: 64000, max_output_tokens: 4000, cost: {{ input: 10, output: 10 }} }}\n    \
         far/away: {{ alias: away, tier: premium, context_window: 64000, max_output_tokens: 4000, free: true }}\n"
    ))
}

async fn supervisor(provider: &Provider, models: &str, more: &str) -> Supervisor {
    with_models(Builder::new().misbehave(&[], models), provider, more).start().await
}

async fn costs(supervisor: &Supervisor, session: &str) -> GetCostsResponse {
    let mut agent = TestAgent::of(supervisor).await.raw;
    let request = GetCostsRequest { session_id: session.to_owned() };
    agent.get_costs(request).await.expect("costs").into_inner()
}

/// What misbehave says to a call of a person.
async fn complete(supervisor: &Supervisor, pairs: &[(&str, &str)]) -> String {
    let answer = supervisor.client.call("misbehave", "complete", pairs).await;
    format!("{}{}", answer.content, answer.error)
}

/// Waits until what was left behind has a result that contains this.
async fn wait_left(supervisor: &Supervisor, text: &str) -> String {
    let mut last = String::new();
    for _ in 0..LOOKS {
        last = complete(supervisor, &[("how", "left")]).await;
        if last.contains(text) {
            return last;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("nothing left behind says {text:?}: {last}\n{}", supervisor.log())
}

/// The socket for completions, as a plugin's environment names it.
fn model_socket(env: &str) -> Option<PathBuf> {
    env.lines().find_map(|line| line.strip_prefix("TALON_MODEL_SOCKET=")).map(PathBuf::from)
}

/// Where it lies: beside the socket of the plugin's state.
fn beside_state(env: &str) -> PathBuf {
    let state = env.lines().find_map(|line| line.strip_prefix("TALON_STATE_SOCKET=")).expect("it has state");
    Path::new(state).with_file_name("q")
}

fn text(asked: &AskResult) -> &str {
    assert_eq!(asked.code, Some(0), "{asked:?}");
    asked.text("text")
}

// Promises: EXT-120, EXT-123, EXT-170
#[tokio::test]
async fn a_completion_is_made_and_charged_to_its_turn_and_its_plugin() {
    let provider = provider_calling(json!({"prompt": "P:one", "model": "priced"}), repeats).await;
    let supervisor = supervisor(&provider, "models: { allow: [auto, priced] }", "").await;
    let asked = ask(&supervisor, "go", &[]).await;
    assert!(text(&asked).contains("said <P:one> by local/priced"), "{asked:?}");
    let spent = costs(&supervisor, asked.text("session_id")).await;
    // 110 tokens at 10 $ a million, of the plugin alone.
    let pico = spent.session.expect("a session").cost_pico_usd;
    assert_eq!(pico, 1_100_000_000, "{spent:?}");
    let today = costs(&supervisor, "").await;
    assert_eq!(today.by_plugin.len(), 1, "{today:?}");
    assert_eq!(today.by_plugin[0].name, "misbehave");
    assert_eq!(today.by_plugin[0].cost.as_ref().expect("a cost").cost_pico_usd, pico);
    let listed = complete(&supervisor, &[("how", "list")]).await;
    assert_eq!(listed, "auto priced calls 10 tokens 4096");
    // Where the test of a plugin without a grant looks for it.
    let env = supervisor.client.call("misbehave", "env", &[]).await.content;
    assert_eq!(model_socket(&env), Some(beside_state(&env)), "{env}");
    let shown = supervisor.cli(&["plugin", "show", "misbehave"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("auto, priced"), "{shown}");
    assert!(shown.contains("1 answers, 0 failures, ") && shown.contains("0.0011"), "{shown}");
    let shown = supervisor.cli(&["plugin", "show", "misbehave", "--output", "json"]).await;
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(shown["models_today"]["cost_pico_usd"], json!(pico), "{shown}");
    supervisor.stop().await;
}

// Promises: EXT-120
#[tokio::test]
async fn without_a_grant_there_is_no_socket() {
    let provider = provider_calling(json!({"prompt": "P:one"}), repeats).await;
    let supervisor = supervisor(&provider, "", "").await;
    assert_eq!(complete(&supervisor, &[]).await, "TALON_MODEL_SOCKET is not set");
    let env = supervisor.client.call("misbehave", "env", &[]).await.content;
    assert_eq!(model_socket(&env), None);
    let beside = beside_state(&env);
    let tried = supervisor.client.call("misbehave", "connect", &[("path", &beside.to_string_lossy())]).await;
    assert!(tried.error.contains("No such file"), "{tried:?}");
    assert!(!beside.exists());
    supervisor.stop().await;
}

// Promises: EXT-121, EXT-122
#[tokio::test]
async fn what_is_not_granted_is_refused_with_what_is() {
    let provider = provider_calling(json!({"prompt": "P:one", "model": "away"}), repeats).await;
    let supervisor = supervisor(&provider, "models: { allow: [priced] }", "").await;
    let asked = ask(&supervisor, "go", &[]).await;
    assert!(text(&asked).contains("NotFound unknown_model"), "{asked:?}");
    assert!(text(&asked).contains("name one of priced"), "{asked:?}");
    // A person's call is no turn's, and the plugin has no budget of its own.
    for id in
        [&[("prompt", "P:x")][..], &[("prompt", "P:x"), ("id", "")], &[("prompt", "P:x"), ("id", "a.b")]]
    {
        let refused = complete(&supervisor, id).await;
        assert!(refused.contains("FailedPrecondition no_call"), "{refused}");
        assert!(refused.contains("models.own_budget"), "{refused}");
    }
    let last = |question: &Value| question["messages"].as_array().and_then(|all| all.last()).cloned();
    let asked =
        |question: &Value| last(question).is_some_and(|last| last["content"].to_string().contains("\"P:"));
    assert!(!provider.questions().iter().any(asked), "no model was asked");
    supervisor.stop().await;
}

// Promises: EXT-123
#[tokio::test]
async fn two_turns_at_once_are_charged_each_for_its_own() {
    let provider = provider_calling(json!({"model": "priced", "times": "1"}), repeats).await;
    let supervisor = supervisor(&provider, "models: { allow: [priced] }", "").await;
    let (one, two) = tokio::join!(ask(&supervisor, "turn one", &[]), ask(&supervisor, "turn two", &[]));
    for (asked, name) in [(&one, "one"), (&two, "two")] {
        assert!(text(asked).contains(&format!("said <P:{name}>")), "{asked:?}");
        let spent = costs(&supervisor, asked.text("session_id")).await;
        assert_eq!(spent.session.expect("a session").cost_pico_usd, 1_100_000_000);
    }
    let plugin = costs(&supervisor, "").await.by_plugin.remove(0);
    assert_eq!(plugin.cost.expect("a cost").cost_pico_usd, 2_200_000_000);
    supervisor.stop().await;
}

// Promises: EXT-122
#[tokio::test]
async fn a_call_of_another_plugin_is_nobodys() {
    let provider = Provider::responding(|question| {
        let last = question["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        match (last["role"].as_str(), last["content"].as_str()) {
            (Some("tool"), _) => says("done"),
            (_, Some(text)) if text.starts_with("P:") => repeats(text),
            _ => ScriptedReply::ToolCalls(vec![("other__complete".to_owned(), json!({"how": "hold"}))]),
        }
    })
    .await;
    let builder = Builder::new().misbehave(&[], "models: { allow: [priced] }").plugin(
        "other",
        &talon_tests::program("misbehave"),
        &[],
        "models: { allow: [priced] }",
    );
    let supervisor = with_models(builder, &provider, "").start().await;
    let refusing = async {
        let line = supervisor.client.wait_log("other", "misbehave: held ").await;
        let id = line.rsplit(' ').next().expect("an id").trim_end_matches('"').to_owned();
        let naming = [("prompt", "P:x"), ("id", id.as_str())];
        let refused = complete(&supervisor, &naming).await;
        // Its own plugin is believed.
        let own = supervisor.client.call("other", "complete", &naming).await.content;
        supervisor.client.call("other", "complete", &[("how", "release")]).await;
        (refused, own)
    };
    let (asked, (refused, own)) = tokio::join!(ask(&supervisor, "go", &[]), refusing);
    assert!(refused.contains("no_call"), "{refused}");
    assert_eq!(own, "said <P:x> by local/priced");
    let spent = costs(&supervisor, asked.text("session_id")).await;
    assert_eq!(spent.session.expect("a session").cost_pico_usd, 1_100_000_000);
    supervisor.stop().await;
}

// Promises: EXT-123
#[tokio::test]
async fn what_a_hook_asks_is_charged_to_the_turn_that_it_looks_at() {
    let provider = Provider::responding(|question| {
        let last = question["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        match last["content"].as_str() {
            Some(text) if text.starts_with("P:") => says(r#"{"verdict": "pass"}"#),
            _ => says("done"),
        }
    })
    .await;
    let hook = "  request_hooks: [{ action: misbehave.complete, args: { how: text, prompt: 'P:fine?', model: priced } }]";
    let builder = Builder::new()
        .misbehave(&[], "models: { allow: [priced] }")
        .config(&format!("extensions:\n{hook}\n"));
    let supervisor = with_models(builder, &provider, "").start().await;
    let asked = ask(&supervisor, "go", &[]).await;
    assert_eq!(text(&asked), "done");
    let spent = costs(&supervisor, asked.text("session_id")).await;
    assert_eq!(spent.session.expect("a session").cost_pico_usd, 1_100_000_000);
    supervisor.stop().await;
}

// Promises: EXT-125
#[tokio::test]
async fn a_completion_ends_with_its_call() {
    let arguments = json!({"how": "leave_and_hold", "prompt": "P:hang", "model": "priced"});
    let provider = provider_calling(arguments, |_| ScriptedReply::Hang).await;
    let supervisor = supervisor(&provider, "models: { allow: [priced] }", "").await;
    // The call goes on until the completion has begun: one that comes after it is refused instead.
    let releasing = async {
        provider.wait_questions(2).await;
        supervisor.client.call("misbehave", "complete", &[("how", "release")]).await
    };
    let (asked, _) = tokio::join!(ask(&supervisor, "go", &[]), releasing);
    assert!(text(&asked).contains("let go"), "{asked:?}");
    let left = wait_left(&supervisor, "cancelled").await;
    assert!(left.contains("the call that it was for, or its turn, has ended"), "{left}");
    supervisor.stop().await;
}

// Promises: EXT-124
#[tokio::test]
async fn a_pin_and_local_only_hold_for_what_a_plugin_asks() {
    let provider = provider_calling(json!({"prompt": "P:one", "model": "away"}), repeats).await;
    let supervisor = supervisor(&provider, "models: { allow: [away, auto] }", "").await;
    let free = ask(&supervisor, "go", &[]).await;
    assert!(text(&free).contains("by far/away"), "{free:?}");
    let pinned = ask(&supervisor, "go", &["--model", "local/test"]).await;
    assert!(text(&pinned).contains("by local/test"), "{pinned:?}");
    let local = ask(&supervisor, "go", &["--local-only"]).await;
    assert!(text(&local).contains("no_model"), "{local:?}");
    supervisor.stop().await;
}

// Promises: EXT-121
#[tokio::test]
async fn a_call_has_as_many_completions_as_its_grant_says() {
    let provider = provider_calling(json!({"prompt": "P:one", "times": "4"}), repeats).await;
    let supervisor = supervisor(&provider, "models: { allow: [auto], max_calls: 3 }", "").await;
    let asked = ask(&supervisor, "go", &[]).await;
    assert_eq!(text(&asked).matches("said <P:one>").count(), 3, "{asked:?}");
    assert_eq!(text(&asked).matches("too_many_calls").count(), 1, "{asked:?}");
    supervisor.stop().await;
}

// Promises: EXT-128
#[tokio::test]
async fn an_agent_that_is_killed_fails_what_runs_and_the_next_one_serves() {
    let provider = provider_calling(json!({}), |prompt| match prompt {
        "P:hang" => ScriptedReply::Hang,
        other => repeats(other),
    })
    .await;
    let grant = "models: { allow: [auto], own_budget: { per_day: 1 } }";
    let supervisor = supervisor(&provider, grant, "").await;
    let left = complete(&supervisor, &[("how", "leave"), ("prompt", "P:hang"), ("id", "")]).await;
    assert_eq!(left, "left");
    provider.wait_questions(1).await;
    let agent = supervisor.wait_agent("an agent that serves", |agent| agent.state == "serving").await;
    kill(Pid::from_raw(agent.pid.try_into().expect("a pid")), Signal::SIGKILL).expect("it runs");
    let left = wait_left(&supervisor, ":").await;
    assert!(!left.contains("said"), "{left}");
    // The socket is the same: the next agent answers there.
    let again = complete(&supervisor, &[("prompt", "P:again"), ("id", "")]).await;
    assert_eq!(again, "said <P:again> by local/priced");
    supervisor.stop().await;
}

// Promises: EXT-121
#[tokio::test]
async fn a_grant_changes_by_reload_and_can_be_taken_back() {
    let provider = provider_calling(json!({"prompt": "P:one", "model": "priced"}), repeats).await;
    let grant = "models: { allow: [auto], own_budget: { per_day: 1 } }";
    let supervisor = supervisor(&provider, grant, "").await;
    let own = |model| [("prompt", "P:own"), ("id", ""), ("model", model)];
    let refused = complete(&supervisor, &own("priced")).await;
    assert!(refused.contains("name one of auto"), "{refused}");
    let text = std::fs::read_to_string(supervisor.config()).unwrap();
    std::fs::write(supervisor.config(), text.replace("allow: [auto]", "allow: [auto, priced]")).unwrap();
    let reloaded = supervisor.cli(&["reload"]).await;
    assert!(reloaded.status.success(), "{reloaded:?}");
    // The agent hears of it in order with everything else, but this call does not wait for that.
    let mut last = String::new();
    for _ in 0..LOOKS {
        last = complete(&supervisor, &own("priced")).await;
        if last.contains("said") {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    assert_eq!(last, "said <P:own> by local/priced");
    std::fs::write(supervisor.config(), text.replace(grant, "")).unwrap();
    let reloaded = supervisor.cli(&["reload"]).await;
    assert!(reloaded.status.success(), "{reloaded:?}");
    assert_eq!(complete(&supervisor, &own("")).await, "TALON_MODEL_SOCKET is not set");
    supervisor.stop().await;
}

// Promises: EXT-120
#[tokio::test]
async fn without_an_agent_the_check_says_so_and_there_is_no_socket() {
    let supervisor = Builder::new()
        .misbehave(&[], "models: { allow: [auto] }")
        .config("agent: { enabled: false }")
        .start()
        .await;
    assert_eq!(complete(&supervisor, &[]).await, "TALON_MODEL_SOCKET is not set");
    let checked =
        talon_tests::cli(&["config", "check", "--config", &supervisor.config().to_string_lossy()]).await;
    let checked = String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
    assert!(checked.contains("no agent runs: the plugin gets no socket"), "{checked}");
    supervisor.stop().await;
}
