//! Scenarios of the agent from files: each in `tests/scenarios` says what the model says (`kind: scripted`,
//! so no model is asked), what a person asks, and what has to come of it, through a real supervisor, a real
//! agent and real plugins.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use talon_tests::ask::{AskResult, ask};
use talon_tests::{Builder, example, repository};

/// One file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    /// What it is about.
    #[expect(dead_code, reason = "for who reads the file")]
    about: String,
    /// Example plugins that are there.
    #[serde(default)]
    plugins: Vec<String>,
    /// More of the section `agent`.
    #[serde(default)]
    agent: BTreeMap<String, Value>,
    /// What the model says.
    script: Value,
    /// What a second provider says, which is asked when the first one fails.
    #[serde(default)]
    second: Option<Value>,
    steps: Vec<Step>,
}

/// One question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    ask: String,
    #[serde(default)]
    args: Vec<String>,
    /// A JSON Schema for `--schema`.
    #[serde(default)]
    schema: Option<Value>,
    /// In the session of the step before.
    #[serde(default)]
    goes_on: bool,
    /// The answer.
    #[serde(default)]
    text: Option<String>,
    /// The answer as JSON.
    #[serde(default)]
    json: Option<Value>,
    /// The word of what ended the turn without an answer.
    #[serde(default)]
    reason: Option<String>,
    /// What there is of an answer then.
    #[serde(default)]
    partial: Option<String>,
    /// The calls in their order, each with a piece of its result.
    #[serde(default)]
    calls: Option<Vec<(String, String)>>,
    /// Who was tried, and whether they answered.
    #[serde(default)]
    attempts: Option<Vec<(String, bool)>>,
    /// Pieces of what the command says as JSON.
    #[serde(default)]
    told: Vec<String>,
}

async fn plays(name: &str) {
    let file = repository().join("tests/scenarios").join(format!("{name}.yaml"));
    let text = std::fs::read_to_string(&file).expect("there is a scenario");
    let scenario: Scenario = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut builder = Builder::new();
    for plugin in &scenario.plugins {
        builder = builder.plugin(plugin, &example(plugin), &[], "");
    }
    let mut agent = scenario.agent.clone();
    agent.insert("enabled".to_owned(), true.into());
    let mut providers = BTreeMap::new();
    let mut catalog = BTreeMap::new();
    for (weight, (provider, script)) in
        [("scripted", Some(&scenario.script)), ("scripted-two", scenario.second.as_ref())].iter().enumerate()
    {
        let Some(script) = script else { continue };
        let script = builder.scratch().write(&format!("{provider}.yaml"), &script.to_string());
        providers.insert(*provider, serde_json::json!({ "kind": "scripted", "file": script }));
        let model = serde_json::json!({ "tier": "mid", "context_window": 128_000, "tools": true, "free": true, "weight": 200 - weight });
        catalog.insert(format!("{provider}/demo"), model);
    }
    // JSON is YAML.
    let config =
        serde_json::json!({ "agent": agent, "models": { "providers": providers, "catalog": catalog } });
    let sections =
        config.as_object().expect("two sections").iter().map(|(key, value)| format!("{key}: {value}\n"));
    let supervisor = builder.config(&sections.collect::<String>()).start().await;
    let mut session = String::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        let mut args: Vec<String> = step.args.clone();
        if let Some(schema) = &step.schema {
            let schema = supervisor.scratch.write(&format!("schema-{number}.json"), &schema.to_string());
            args.extend(["--schema".to_owned(), schema.display().to_string()]);
        }
        if step.goes_on {
            args.extend(["--session".to_owned(), session.clone()]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let asked = ask(&supervisor, &step.ask, &args).await;
        asked.text("session_id").clone_into(&mut session);
        step.holds(&asked, &format!("{name}, step {}", number + 1));
    }
    supervisor.stop().await;
}

impl Step {
    fn holds(&self, asked: &AskResult, at: &str) {
        let whole = asked.said.to_string();
        if let Some(text) = &self.text {
            assert_eq!((asked.code, asked.text("text")), (Some(0), text.as_str()), "{at}: {asked:?}");
        }
        if let Some(json) = &self.json {
            let said: Value = serde_json::from_str(asked.text("text")).unwrap_or_default();
            assert_eq!(&said, json, "{at}: {asked:?}");
        }
        if let Some(reason) = &self.reason {
            assert!(asked.code.is_some_and(|code| code != 0), "{at}: {asked:?}");
            assert_eq!(asked.text("reason"), reason, "{at}: {asked:?}");
        }
        if let Some(partial) = &self.partial {
            assert!(whole.contains(partial.as_str()), "{at}: no {partial:?} in {asked:?}");
        }
        if let Some(calls) = &self.calls {
            let made = asked.said["calls"].as_array().cloned().unwrap_or_default();
            let names: Vec<&str> = made.iter().filter_map(|call| call["tool"].as_str()).collect();
            let wanted: Vec<&str> = calls.iter().map(|(tool, _)| tool.as_str()).collect();
            assert_eq!(names, wanted, "{at}: {asked:?}");
            for (call, (tool, piece)) in made.iter().zip(calls) {
                assert!(
                    call["result"].to_string().contains(piece.as_str()),
                    "{at}: {tool} brought {}",
                    call["result"]
                );
            }
        }
        if let Some(attempts) = &self.attempts {
            let made = asked.said["attempts"].as_array().cloned().unwrap_or_default();
            let made: Vec<(String, bool)> = made
                .iter()
                .map(|it| (it["provider"].as_str().unwrap_or_default().to_owned(), it["success"] == true))
                .collect();
            assert_eq!(&made, attempts, "{at}: {asked:?}");
        }
        for piece in &self.told {
            assert!(whole.contains(piece.as_str()), "{at}: no {piece:?} in {whole}");
        }
    }
}

macro_rules! scenarios {
    ($($name:ident: $file:literal;)*) => {
        /// Every file is played.
        // Promises: AGENT-62
        #[test]
        fn every_scenario_is_played() {
            let mut files: Vec<String> = std::fs::read_dir(repository().join("tests/scenarios"))
                .unwrap()
                .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            files.sort();
            let mut played = vec![$($file),*];
            played.sort_unstable();
            assert_eq!(files, played);
        }

        $(
            #[tokio::test]
            async fn $name() {
                plays($file).await;
            }
        )*
    };
}

scenarios! {
    // Promises: AGENT-62
    several_steps_lead_to_an_answer: "several-steps";
    // Promises: AGENT-62
    calls_of_one_answer_run_at_once: "parallel-calls";
    questions_run_out: "iterations";
    the_same_again_and_again_ends: "identical-successes";
    errors_of_a_tool_end: "tool-errors";
    // Promises: AGENT-62
    a_round_that_brings_nothing_new_ends: "no-progress";
    // Promises: AGENT-62
    an_answer_is_made_to_fit: "structured-answer";
    // Promises: AGENT-62
    a_provider_that_fails_is_left: "fallback";
    // Promises: AGENT-62
    a_sub_agent_is_asked: "sub-agent";
    what_is_saved_is_remembered: "memory";
}
