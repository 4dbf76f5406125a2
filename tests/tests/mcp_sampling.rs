//! MCP servers that ask models (`sampling/createMessage`), through the bridge and the agent: a server made with the
//! official Python library, in both ways of asking, and one of Node's.

use std::path::Path;

use serde_json::{Value, json};
use talon_tests::ask::{AskResult, ask};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, Supervisor, mcp_packages, repository, skip, target, without_mcp_packages};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
const GRANT: &str = "models: { allow: [auto, priced] }";
const NODE: &str = "/usr/bin/node";

/// A provider that has a turn call this tool with these arguments, says in the end what the call brought, and repeats
/// prompts of servers, which contain `P:`.
async fn provider(tool: &'static str, arguments: Value) -> Provider {
    Provider::responding(move |question| {
        let last = question["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let text = last["content"].as_str().unwrap_or_default().to_owned();
        match last["role"].as_str() {
            Some("tool") => ScriptedReply::Text(format!("the tool: {text}")),
            _ if text.contains("P:") => ScriptedReply::Text(format!("<{text}>")),
            _ => ScriptedReply::ToolCalls(vec![(tool.to_owned(), arguments.clone())]),
        }
    })
    .await
}

fn with_models(builder: Builder, provider: &Provider) -> Builder {
    let url = provider.url();
    builder.config(&format!(
        "agent:\n  enabled: true\n  confirm: {{ default: never }}\nmodels:\n  default: local/test\n  providers:\n    local: {{ kind: openai, base_url: \"{url}\" }}\n  \
         catalog:\n    local/test: {{ tier: mid, context_window: 128000, tools: true, free: true }}\n    \
         local/priced: {{ alias: priced, tier: cheap, context_window: 64000, max_output_tokens: 4000, cost: {{ input: 10, output: 10 }} }}\n"
    ))
}

/// A supervisor with the server of the official Python library as the plugin `fly`.
async fn python(provider: &Provider, revision: &str, more: &str) -> Supervisor {
    python_server(provider, "sampling_server.py", &mcp_packages(), revision, more).await
}

/// A supervisor with a server in Python, with these packages, as the plugin `fly`.
async fn python_server(
    provider: &Provider,
    server: &str,
    packages: &Path,
    revision: &str,
    more: &str,
) -> Supervisor {
    let builder = Builder::new();
    let script = builder.scratch().install(&repository().join("tests/mcp").join(server), "server/s.py");
    let reads = script.parent().expect("a file is in a directory").display().to_string();
    let packages = packages.canonicalize().expect("it is there");
    let entry = format!(
        "dialect: mcp\nstart_timeout: 120s\nconfig: {{ protocol: \"{revision}\" }}\n\
         sandbox: {{ fs: {{ read: [{reads}], execute: [{}] }} }}\n{more}",
        packages.display()
    );
    let script = script.display().to_string();
    let builder = builder.plugin("fly", &packages.join("bin/python"), &[&script], &entry);
    let supervisor = with_models(builder, provider).start().await;
    let plugin = supervisor.client.plugin("fly").await;
    assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, supervisor.client.logs("fly").await);
    supervisor
}

fn text(asked: &AskResult) -> &str {
    assert_eq!(asked.code, Some(0), "{asked:?}");
    asked.text("text")
}

// Promises: EXT-130, EXT-131
#[tokio::test]
async fn a_server_asks_the_granted_model_in_both_ways() {
    if without_mcp_packages("a_server_asks_the_granted_model_in_both_ways") {
        return;
    }
    for revision in REVISIONS {
        let provider = provider("fly__summarize", json!({"text": "rain"})).await;
        let supervisor = python(&provider, revision, GRANT).await;
        let asked = ask(&supervisor, "go", &[]).await;
        assert!(text(&asked).contains("<P:rain> by local/priced, endTurn"), "{revision}: {asked:?}");
        let sampled =
            provider.bodies().into_iter().find(|body| body.contains("\"P:rain\"")).expect("it was asked");
        assert!(sampled.contains("Be brief."), "{sampled}");
        supervisor.stop().await;
    }
}

// Promises: EXT-130
#[tokio::test]
async fn a_server_of_fastmcp_samples() {
    let packages = target().join("mcp/fastmcp");
    if !packages.join("bin/python").exists() {
        let why = format!("there is no {} (tests/scripts/deps.sh test installs it)", packages.display());
        return skip("a_server_of_fastmcp_samples", &why);
    }
    let provider = provider("fly__summarize", json!({"text": "rain"})).await;
    let supervisor = python_server(&provider, "fastmcp_server.py", &packages, REVISIONS[0], GRANT).await;
    let asked = ask(&supervisor, "go", &[]).await;
    assert!(text(&asked).contains("FastMCP got <P:rain>"), "{asked:?}");
    let sampled =
        provider.bodies().into_iter().find(|body| body.contains("\"P:rain\"")).expect("it was asked");
    assert!(sampled.contains("Be brief."), "{sampled}");
    assert_eq!(asked.said["cost_pico_usd"], json!(1_100_000_000), "the granted model answered: {asked:?}");
    supervisor.stop().await;
}

// Promises: EXT-131
#[tokio::test]
async fn a_server_gets_nothing_of_the_context() {
    if without_mcp_packages("a_server_gets_nothing_of_the_context") {
        return;
    }
    for revision in REVISIONS {
        let provider = provider("fly__peek", json!({"text": "rain"})).await;
        let supervisor = python(&provider, revision, GRANT).await;
        let asked = ask(&supervisor, "go", &[]).await;
        assert!(text(&asked).contains("includeContext"), "{revision}: {asked:?}");
        assert!(provider.bodies().iter().all(|body| !body.contains("\"P:rain\"")));
        supervisor.stop().await;
    }
}

// Promises: EXT-130
#[tokio::test]
async fn without_a_grant_a_server_is_told_of_no_sampling() {
    if without_mcp_packages("without_a_grant_a_server_is_told_of_no_sampling") {
        return;
    }
    for revision in REVISIONS {
        let provider = provider("fly__summarize", json!({"text": "rain"})).await;
        let supervisor = python(&provider, revision, "").await;
        let asked = ask(&supervisor, "go", &[]).await;
        assert!(text(&asked).contains("sampling"), "{revision}: {asked:?}");
        assert!(provider.bodies().iter().all(|body| !body.contains("\"P:rain\"")));
        supervisor.stop().await;
    }
}

// Promises: EXT-130
#[tokio::test]
async fn a_server_of_node_asks_too() {
    let packages = target().join("mcp/node");
    for needed in [Path::new(NODE), &packages] {
        if !needed.exists() {
            let how =
                format!("there is no {}, which `tests/scripts/deps.sh test` installs", needed.display());
            return skip("a_server_of_node_asks_too", &how);
        }
    }
    let packages = packages.canonicalize().expect("it exists");
    let script = packages.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let provider = provider("every__trigger-sampling-request", json!({"prompt": "P:node"})).await;
    let entry = format!(
        "dialect: mcp\nstart_timeout: 120s\nsandbox: {{ fs: {{ read: [{}] }} }}\n{GRANT}",
        packages.display()
    );
    let script = script.display().to_string();
    let builder = Builder::new().plugin("every", Path::new(NODE), &[&script, "stdio"], &entry);
    let supervisor = with_models(builder, &provider).start().await;
    let asked = ask(&supervisor, "go", &[]).await;
    assert!(text(&asked).contains("context: P:node>"), "{asked:?}");
    assert!(text(&asked).contains("endTurn"), "{asked:?}");
    supervisor.stop().await;
}
