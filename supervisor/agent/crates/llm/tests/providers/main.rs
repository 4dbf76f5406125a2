//! The providers against a server on a real socket that replays recorded exchanges.

mod answers;
mod embeddings;
mod errors;
mod hostile;
mod keys;
mod logs;
mod network;
mod quirks;
mod sent;
mod server;
mod splitting;
mod tls;
mod wires;

use std::sync::Arc;

use talon_agent_settings::{ModelKeys, Settings, SettingsBundle, read_file};
use talon_llm::Provider;
use talon_llm::config::{Config, ProviderEntry, ProviderKind, Providers, TimeSpan};
use talon_llm::model::{Answer, Chunk, Message, ProviderError, Request, ToolSpec};

/// A fixture's bytes.
fn fixture(path: &str) -> String {
    let path = format!("{}/tests/fixtures/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// An entry for a local server.
fn entry(kind: ProviderKind, url: &str) -> ProviderEntry {
    ProviderEntry { base_url: Some(url.to_owned()), ..ProviderEntry::new(kind) }
}

/// The providers of a configuration, with these environment variables.
fn providers(config: &Config, env: &dyn Fn(&str) -> Option<String>) -> Providers {
    let models = ModelKeys { providers: config.clone(), ..ModelKeys::default() };
    let settings = Settings { models, ..Settings::default() };
    let (bundle, _) = SettingsBundle::collect(&settings, env, &read_file);
    talon_llm::config::providers(config, &bundle)
}

fn build(entry: ProviderEntry) -> Arc<dyn Provider> {
    build_with(entry, &|_| None)
}

fn build_with(entry: ProviderEntry, env: &dyn Fn(&str) -> Option<String>) -> Arc<dyn Provider> {
    let mut made = providers(&Config([("local".to_owned(), entry)].into()), env);
    made.ready.remove("local").unwrap_or_else(|| panic!("{:?}", made.problems))
}

/// An entry with a short timeout for the first piece.
fn impatient(kind: ProviderKind, url: &str) -> ProviderEntry {
    let mut entry = entry(kind, url);
    entry.timeouts.first_token = TimeSpan::from_millis(300);
    entry
}

/// An entry with a short timeout between pieces. The server has to send everything at once, or a busy machine
/// is too late.
fn restless(kind: ProviderKind, url: &str) -> ProviderEntry {
    let mut entry = entry(kind, url);
    entry.timeouts.between = TimeSpan::from_millis(300);
    entry
}

/// A question with two tools on offer.
fn question(text: &str) -> Request {
    let tool = |name: &str, argument: &str| ToolSpec {
        name: name.to_owned(),
        description: format!("the tool {name}"),
        parameters: serde_json::json!({ "type": "object", "properties": { argument: { "type": "string" } } })
            .into(),
    };
    Request {
        model: "a-model".to_owned(),
        messages: vec![
            Message::System { text: "Be brief.".to_owned() },
            Message::User { text: text.to_owned() },
        ],
        tools: vec![tool("weather", "city"), tool("notes_add", "text")],
        ..Request::default()
    }
}

/// Asks, and records the pieces.
async fn ask(provider: &Arc<dyn Provider>) -> (Result<Answer, ProviderError>, Vec<Chunk>) {
    ask_for(provider, &question("What is the weather?")).await
}

async fn ask_for(
    provider: &Arc<dyn Provider>,
    request: &Request,
) -> (Result<Answer, ProviderError>, Vec<Chunk>) {
    let mut chunks = Vec::new();
    let answer = provider.ask(request, &mut |chunk| chunks.push(chunk)).await;
    (answer, chunks)
}
