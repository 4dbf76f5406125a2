//! `talon extension`: the entries of `extensions`, and a try of one of them.

use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use talon_proto::agent::{TestExtensionRequest, TestExtensionResponse};
use talon_proto::host::GetStatusRequest;

use super::connection::AgentConnection;
use super::formatting::single_line;
use super::storage_sample;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::input::InputSource;
use crate::line::Line;
use crate::output::Output;
use crate::show;
use crate::table::Table;

/// The role that needs no agent: talon-state calls it, and an administrator may.
const STORAGE_BACKEND: &str = "storage_backend";
/// The largest sample, as the agent takes it.
const MAX_SAMPLE_BYTES: u64 = 512 << 10;

/// List and try the actions that extend the system.
#[derive(Debug, Subcommand)]
pub(crate) enum ExtensionVerb {
    List(ListArgs),
    Test(TestArgs),
}

/// List the entries of `extensions`: which action plays which role, and whether it works.
///
/// ready: the action fits. waiting: its plugin is not ready. failing: the action does not fit, and the reason says what to do.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon extension list
  talon extension list --output json | jq '.extensions[] | select(.state != \"ready\")'"
)]
pub(crate) struct ListArgs {}

/// Call the action of one entry with a sample, and show what would come of its answer.
///
/// No turn begins, and nothing is stored; what the action does, it does. The exit code is 1 if the entry fails. A job is tried with
/// `talon schedule run`. A storage backend is asked for a key, or for a page: a sample that writes is refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon extension test request_hook pii.scan
  talon extension test request_hook pii.scan --message 'my card is 4111 1111 1111 1111'
  talon extension test response_hook words.polish --sample sample.json
  talon extension test notification_sink webhook.send
  talon extension test api_route jira.create --sample request.json
  talon extension test storage_backend valkey.store
  talon extension test channel slack")]
pub(crate) struct TestArgs {
    /// The role of the entry.
    #[arg(value_parser = [
        "filter", "request_hook", "response_hook", "notification_sink", "auth_provider", "api_route",
        "storage_backend", "channel",
    ])]
    role: String,
    /// The entry's name, or its action.
    #[arg(value_name = "ACTION")]
    entry: String,
    /// A file with the role's arguments as one JSON object, laid over a built-in sample; `-` is stdin.
    #[arg(long, value_name = "FILE", conflicts_with = "message")]
    sample: Option<PathBuf>,
    /// The message of the sample, for filters and hooks.
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
}

impl ExtensionVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(ListArgs {}) => list(socket, out).await,
            Self::Test(args) => args.run(socket, out).await,
        }
    }
}

async fn list(socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
    let mut client = Client::connect(socket).await?;
    let answer =
        client.host.get_status(GetStatusRequest {}).await.map_err(|status| client.failure(&status))?;
    let extensions = answer.into_inner().extensions;
    if out.is_json() {
        out.json(&json!({ "extensions": extensions }));
    } else if extensions.is_empty() {
        out.line("no extensions: add entries under `extensions`; see docs/extensions");
    } else {
        out.table(&show::extensions(&extensions));
    }
    Ok(exit::OK)
}

impl TestArgs {
    async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let sample_json = match (&self.sample, &self.message) {
            (Some(sample), _) => text_of(sample)?,
            (None, Some(message)) => json!({ "message": message }).to_string(),
            (None, None) => String::new(),
        };
        let answer = if self.role == STORAGE_BACKEND {
            storage_sample::call(socket, &self.entry, &sample_json).await?
        } else {
            let reach = AgentConnection::connect(socket).await?;
            let request = TestExtensionRequest { role: self.role, entry: self.entry, sample_json };
            reach.send_once(async |mut agent| agent.test_extension(request).await).await?
        };
        if out.is_json() {
            out.json(&fields(&answer));
        } else {
            print(&answer, out);
        }
        Ok(if answer.verdict == "failed" { exit::TOOL_ERROR } else { exit::OK })
    }
}

fn text_of(sample: &Path) -> Result<String, Failure> {
    let bytes = InputSource::of(sample)
        .read(MAX_SAMPLE_BYTES)
        .map_err(|error| Failure::usage(format!("--sample: {error}")))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("the sample is not UTF-8"))
}

fn fields(answer: &TestExtensionResponse) -> Value {
    json!({
        "entry": answer.entry,
        // The agent's own JSON.
        "arguments": serde_json::from_str::<Value>(&answer.arguments_json).unwrap_or_default(),
        "verdict": answer.verdict,
        "message": answer.message,
        "metadata": answer.metadata,
        "reason": answer.reason,
        "effect": answer.effect,
        "duration_us": answer.duration_us,
    })
}

fn print(answer: &TestExtensionResponse, out: &mut Output) {
    let mut table = Table::new(&[]);
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            table.row(vec![name.into(), value.into()]);
        }
    };
    row("entry", &answer.entry);
    row("called with", &answer.arguments_json);
    row("verdict", &answer.verdict);
    row("reason", &answer.reason);
    row("message", &answer.message);
    for (key, value) in &answer.metadata {
        row("metadata", &format!("{key}: {value}"));
    }
    row(
        "took",
        &format!("{:.1} ms", std::time::Duration::from_micros(answer.duration_us).as_secs_f64() * 1000.0),
    );
    out.table(&table);
    out.line(Line::styled(Style::new().bold(), single_line(&answer.effect)));
}
