//! `talon event`: what an operator wants to be told of, as it is kept.

use anstyle::AnsiColor;
use clap::{Args, Subcommand, ValueEnum};
use talon_proto::host::{HostEvent, SubscribeRequest};
use talon_sanitize::sanitized;
use tonic::Status;

use crate::client::connection::Client;
use crate::client::events::{is_connection_lost, reconnect};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::line::{Line, sanitized_line};
use crate::output::Output;
use crate::show::timestamp;

/// List events for an operator: plugins that failed, configurations that were refused.
///
/// These events are numbered and kept over restarts, and the agent's notifications are made of them. `talon events` shows everything
/// that happens, and keeps nothing.
#[derive(Debug, Subcommand)]
pub(crate) enum EventVerb {
    List(ListArgs),
}

/// List events that are kept, oldest first.
///
/// Events of one kind about one plugin within a minute are one event, whose field `count` says how many. What is kept is bounded
/// (events.max_bytes, events.max_events); at the bound the oldest go. Needs the role operate.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon event list
  talon event list --follow
  talon event list --after 1780000000042
  talon event list --source plugins --follow
  talon event list --output json | jq -r 'select(.severity == \"critical\") | .summary'"
)]
pub(crate) struct ListArgs {
    /// Only events after this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    after: u64,
    /// Whose events: the supervisor's own, or those that plugins tell. Each has numbers of its own.
    #[arg(long, value_name = "SOURCE", default_value = "supervisor")]
    source: EventSource,
    /// Go on with events as they come, also when the supervisor is restarted.
    #[arg(short, long)]
    follow: bool,
}

/// Whose events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EventSource {
    Supervisor,
    Plugins,
}

impl EventSource {
    fn on_wire(self) -> &'static str {
        match self {
            Self::Supervisor => "",
            Self::Plugins => "plugins",
        }
    }
}

impl EventVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
        }
    }
}

impl ListArgs {
    async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let mut after = self.after;
        loop {
            let ended = stream(&mut client, &mut after, self.source, !self.follow, out).await;
            if out.is_closed() {
                return Ok(exit::OK);
            }
            match ended {
                Ok(()) if !self.follow => {
                    if after == self.after && !out.is_json() {
                        out.line("no events");
                    }
                    return Ok(exit::OK);
                }
                Err(status) if !self.follow || !is_connection_lost(&status) => {
                    return Err(client.failure(&status));
                }
                _ => {}
            }
            client = reconnect(client.path(), out).await?;
        }
    }
}

/// Prints events until the stream ends, and moves `after` on.
async fn stream(
    client: &mut Client,
    after: &mut u64,
    source: EventSource,
    kept_only: bool,
    out: &mut Output,
) -> Result<(), Status> {
    let request = SubscribeRequest { after: *after, kept_only, source: source.on_wire().to_owned() };
    let mut events = client.host.subscribe(request).await?.into_inner();
    while !out.is_closed() {
        let Some(event) = events.message().await? else { return Ok(()) };
        *after = event.number;
        if out.is_json() {
            out.json_line(&json::fields(&event));
        } else {
            print(&event, out);
        }
    }
    Ok(())
}

fn print(event: &HostEvent, out: &mut Output) {
    let color = match event.severity.as_str() {
        "critical" => AnsiColor::Red,
        "warning" => AnsiColor::Yellow,
        _ => AnsiColor::Cyan,
    };
    let count = event.fields.get("count").filter(|count| *count != "1");
    let times = count.map(|count| format!(" ({count} times)")).unwrap_or_default();
    let at = u64::try_from(event.time_unix_ms).unwrap_or_default();
    out.line(
        Line::styled(AnsiColor::BrightBlack.on_default(), timestamp(at))
            .and(sanitized!(" {} ", event.number))
            .and_styled(color.on_default(), sanitized_line(&event.kind))
            .and(sanitized!(" {}{}", sanitized_line(&event.summary), sanitized_line(&times))),
    );
    out.flush();
}
