//! The gateway against what other people's programs expect: its own OpenAPI document, read by schemathesis and by the TypeScript
//! compiler, and RFC 6455, by wsproto.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use talon_tests::ask::with_agent;
use talon_tests::gateway_client::{Setting, says, start_with_gateway};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, program, repository, skip};
use tokio::process::Command;

/// Requests of a test are no flood: what limits them is tested elsewhere.
const UNLIMITED: &str =
    "max_role: admin, limits: { requests_per_minute: 1000000, requests_per_minute_per_address: 1000000 }";

/// How many requests are made up for each operation, beside those at the edges of its schema. `make long` makes up more.
const EXAMPLES: &str = "TALON_TEST_EXAMPLES";

/// A program of the environment that `make test` sets up; `None`, by name, where there is none.
fn installed(test: &str, name: &str) -> Option<PathBuf> {
    let path = repository().join("target/gateway/bin").join(name);
    if !path.exists() {
        skip(test, "target/gateway is not there: `make deps-test` installs it");
        return None;
    }
    Some(path)
}

/// What a program prints; it has to end well.
async fn succeeds(setting: &Setting, program: PathBuf, args: &[&str]) -> String {
    // What they write for later runs is nobody's.
    let place = tempfile::tempdir().expect("a directory");
    let run = Command::new(program)
        .args(args)
        .current_dir(place.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = run.await.expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{error}\n{}", setting.supervisor.log());
    said
}

/// A model that says one thing, and makes vectors.
fn model(question: &Value) -> ScriptedReply {
    let Some(texts) = question.get("input").and_then(Value::as_array) else { return says("Hi.") };
    let vector = |index| json!({"object": "embedding", "index": index, "embedding": [1, 0, 0]});
    let data: Vec<Value> = (0..texts.len()).map(vector).collect();
    let usage = json!({"prompt_tokens": 1, "total_tokens": 1});
    let body = json!({"object": "list", "data": data, "model": "vectors", "usage": usage});
    ScriptedReply::Raw(200, "application/json", body.to_string())
}

/// A gateway before an agent that lacks nothing: what is not configured is 501.
async fn start_with_all() -> Setting {
    let provider = Provider::responding(model).await;
    let builder = Builder::new().plugin("liar", &program("misbehave"), &[], "");
    let builder =
        builder.config(&format!("gateway: {{ enabled: true, address: '127.0.0.1:0', {UNLIMITED} }}"));
    let vectors = "  embeddings: { provider: local, model: vectors }";
    let supervisor = with_agent(builder, &provider, "", vectors).start().await;
    let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    let address = status.url.trim_start_matches("http://").parse().expect("an address");
    Setting { supervisor, provider, address }
}

// Promises: GW-140
#[tokio::test(flavor = "multi_thread")]
async fn no_request_gets_what_the_description_does_not_say() {
    let Some(schemathesis) = installed("no_request_gets_what_the_description_does_not_say", "schemathesis")
    else {
        return;
    };
    let setting = start_with_all().await;
    let token = setting.token(&["--scope", "chat,approve,operate,admin"]).await;
    let examples = std::env::var(EXAMPLES).unwrap_or_else(|_| "4".to_owned());
    let (url, bearer) =
        (format!("http://{}/api/openapi.json", setting.address), format!("Authorization: Bearer {token}"));
    let said = succeeds(
        &setting,
        schemathesis,
        &[
            "run",
            &url,
            "--header",
            &bearer,
            // What it answers, not what it accepts: a name that is not there is 404 however well it is spelt.
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance",
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            &examples,
            "--seed",
            "1",
            "--generation-deterministic",
            // Streams of events have no end.
            "--exclude-path-regex",
            "/(events|bus)$",
            "--request-timeout",
            "60",
            "--no-color",
        ],
    )
    .await;
    assert!(said.contains(" passed") && !said.contains("Unresolvable"), "{said}");
    setting.supervisor.stop().await;
}

// Promises: GW-141
#[tokio::test(flavor = "multi_thread")]
async fn the_websocket_keeps_to_rfc_6455() {
    let Some(python) = installed("the_websocket_keeps_to_rfc_6455", "python") else { return };
    let setting = start_with_gateway(vec![says("Hi.")], UNLIMITED).await;
    let token = setting.token(&["--scope", "chat"]).await;
    let script = repository().join("tests/gateway/rfc6455.py");
    let script = script.to_str().expect("the repository's path is text");
    let said = succeeds(&setting, python, &["-B", script, &setting.address.to_string(), &token]).await;
    assert!(said.contains(" 0 failed"), "{said}");
    setting.supervisor.stop().await;
}

// Promises: GW-272
#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_client_compiles_strictly_and_runs() {
    let compiler = repository().join("target/typescript/node_modules/.bin/tsc");
    if !compiler.exists() {
        let why = "target/typescript is not there: `make deps-test` installs it";
        skip("the_typescript_client_compiles_strictly_and_runs", why);
        return;
    }
    // As many as the example has turns.
    let replies = std::iter::repeat_with(|| says("Hi.")).take(5).collect();
    let setting = start_with_gateway(replies, UNLIMITED).await;
    let token = setting.token(&["--scope", "chat"]).await;
    let compiled = tempfile::tempdir().expect("a directory");
    let place = compiled.path().to_str().expect("it is text");
    let project = repository().join("tests/typescript");
    // What may not compile is in its files as well, marked so: that it compiles is an error.
    let project = project.to_str().expect("the repository's path is text");
    succeeds(&setting, compiler, &["--project", project, "--outDir", place]).await;
    let script = compiled.path().join("run.mjs");
    std::fs::copy(format!("{project}/run.mjs"), &script).expect("it is there");
    std::fs::write(compiled.path().join("package.json"), r#"{"type": "module"}"#).expect("it is written");
    let url = format!("http://{}", setting.address);
    let script = script.to_str().expect("it is text");
    let said = succeeds(&setting, "/usr/bin/node".into(), &[script, &url, &token]).await;
    let said: Vec<&str> = said.lines().collect();
    let [whole, streamed, stored, read, tokens, missing] = said[..] else { panic!("{said:?}") };
    assert_eq!([whole, streamed, stored, read], ["Hi."; 4], "{said:?}");
    assert!(tokens.ends_with(" tokens") && missing == "404 urn:talon:problem:not-found", "{said:?}");
    setting.supervisor.stop().await;
}
