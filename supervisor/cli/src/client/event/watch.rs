//! `talon event watch`: what happens, as it happens.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anstyle::AnsiColor;
use clap::Args;
use talon_proto::host::{Event, WatchEventsRequest};
use talon_sanitize::sanitized;
use tonic::{Code, Status};

use crate::client::agent::BusWatch;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::line::{Line, sanitized_line};
use crate::output::Output;
use crate::{json, show::timestamp};

/// Delay before the next reconnect attempt, at first and after many attempts. A restart takes a second or
/// two.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// The field of a finished call that says what each layer of the guard did.
const LAYERS: &str = "layers";

/// Print events as they happen: state changes, exits, finished calls, failed health checks, what plugins tell.
///
/// `talon events` is the same. Runs until it is interrupted or the supervisor exits. With --follow it waits for the next supervisor and
/// continues there; an event of the kind `reconnected` marks the place where events may be missing. A reader
/// that is too slow learns how many events it missed. Each supervisor numbers its events from 1.
///
/// With --type it prints those of the agent's event bus instead: messages, tools, sessions, approvals, jobs, notifications, and what
/// the supervisor says of plugins and its guard. docs/events.md lists the kinds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon event watch
  talon event watch --plugin hello --count 1
  talon event watch --follow --output json >>events.jsonl
  talon events --type 'tool.*' --type agent.thinking
  talon events --type 'message.*' --mine
  talon event watch --output json | jq -r 'select(.kind == \"plugin_exited\") | .message'")]
pub(crate) struct WatchArgs {
    /// Only events of this plugin.
    #[arg(long, value_name = "PLUGIN", conflicts_with = "types")]
    plugin: Option<String>,
    /// Only events of the event bus of this kind, such as tool.complete, tool.* or * for all; may be given several times.
    #[arg(long = "type", value_name = "KIND")]
    types: Vec<String>,
    /// With --type: only what belongs to you, for which no role is needed.
    #[arg(long, requires = "types")]
    mine: bool,
    /// Continue when the supervisor is restarted.
    #[arg(short, long)]
    follow: bool,
    /// Exit after this many events.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

impl WatchArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        if !self.types.is_empty() {
            let Self { types: kinds, mine, follow, count, .. } = self;
            return BusWatch { kinds, mine, follow, count }.run(socket, out).await;
        }
        let mut client = Client::connect(socket).await?;
        let plugin = self.plugin.unwrap_or_default();
        let mut left = self.count.unwrap_or(u64::MAX);
        loop {
            let ended = stream(&mut client, &plugin, &mut left, out).await;
            if left == 0 || out.is_closed() {
                return Ok(exit::OK);
            }
            match ended {
                Ok(()) if !self.follow => return Ok(exit::OK),
                Err(status) if !self.follow || !is_connection_lost(&status) => {
                    return Err(client.failure(&status));
                }
                _ => {}
            }
            let away = SystemTime::now();
            client = reconnect(client.path(), out).await?;
            show(&reconnected(away), out);
        }
    }
}

/// Prints the events of one supervisor until it exits or enough were printed.
async fn stream(client: &mut Client, plugin: &str, left: &mut u64, out: &mut Output) -> Result<(), Status> {
    let request = WatchEventsRequest { plugin: plugin.to_owned(), ..WatchEventsRequest::default() };
    let mut events = client.host.watch_events(request).await?.into_inner();
    while *left > 0 && !out.is_closed() {
        let Some(event) = events.message().await? else { return Ok(()) };
        show(&event, out);
        *left -= 1;
    }
    Ok(())
}

/// Whether the error means that the connection ended, rather than being the supervisor's response.
pub(crate) fn is_connection_lost(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Cancelled | Code::Unknown | Code::Internal)
}

/// Waits for the next supervisor on that socket, however long it takes.
pub(crate) async fn reconnect(path: &Path, out: &mut Output) -> Result<Client, Failure> {
    out.err_line(sanitized!(
        "talon: the supervisor at {} ended; waiting for the next one",
        sanitized_line(path.display())
    ));
    let mut pause = MIN_BACKOFF;
    loop {
        match Client::connect_to(path.to_owned()).await {
            Ok(client) => return Ok(client),
            Err(failure) if failure.code() == exit::UNREACHABLE => {}
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_BACKOFF);
    }
}

/// Marks where events may be missing. Only this client creates this kind of event.
fn reconnected(away: SystemTime) -> Event {
    let now = SystemTime::now();
    let seconds = now.duration_since(away).unwrap_or_default().as_secs_f64();
    let unix_ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Event {
        unix_ms: u64::try_from(unix_ms).unwrap_or(u64::MAX),
        kind: "reconnected".to_owned(),
        message: format!(
            "connected again after {seconds:.1} seconds: what happened in between may be missing"
        ),
        ..Event::default()
    }
}

fn show(event: &Event, out: &mut Output) {
    if out.is_json() {
        out.json_line(&json::fields(event));
    } else {
        print(event, out);
    }
}

fn print(event: &Event, out: &mut Output) {
    let who = match (event.plugin.as_str(), event.instance) {
        ("", _) => "talon".into(),
        (plugin, 0) => sanitized_line(plugin),
        (plugin, instance) => sanitized!("{}/{}", sanitized_line(plugin), instance),
    };
    // Do not repeat what the sentence already says. Thirteen layers are for programs: JSON has them.
    let news = event.fields.iter().filter(|(key, value)| {
        !value.is_empty() && !event.message.contains(value.as_str()) && *key != LAYERS
    });
    let fields: Vec<String> = news.map(|(key, value)| format!("{key}={value}")).collect();
    let text = format!("{} {}", event.message, fields.join(" "));
    out.line(
        Line::styled(AnsiColor::BrightBlack.on_default(), timestamp(event.unix_ms))
            .and(sanitized!(" {} ", who))
            .and_styled(AnsiColor::Cyan.on_default(), sanitized_line(&event.kind))
            .and(sanitized!(" {}", sanitized_line(text.trim()))),
    );
    out.flush();
}
