//! `talon event list`: what an operator wants to be told of, as it is kept.

use anstyle::AnsiColor;
use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use futures_util::stream::select_all;
use talon_proto::host::{HostEvent, SubscribeRequest};
use talon_sanitize::sanitized;
use tonic::{Status, Streaming};

use super::merge::Merged;
use super::watch::{is_connection_lost, reconnect};
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::line::{Line, sanitized_line};
use crate::output::Output;
use crate::show::timestamp;

/// What plugins tell, as their kind.
const SOURCE_EVENT: &str = "source.event";

/// List events that are kept, oldest first.
///
/// Of the supervisor, those of one kind about one plugin within a minute are one event, whose field `count` says how many. What is kept
/// is bounded (events.max_bytes, events.max_events); at the bound the oldest go. Needs the role operate.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon event list
  talon event list --follow
  talon event list --source host --after 1780000000042
  talon event list --source plugins --follow
  talon event list --output json | jq -r 'select(.severity == \"critical\") | .summary'"
)]
pub(crate) struct ListArgs {
    /// Only events after this number; with one --source, since each numbers its own.
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// Whose events: host (the supervisor's own), plugins (what they tell, of the kind source.event), or all.
    #[arg(long, value_name = "SOURCE", default_value = "all")]
    source: SourceChoice,
    /// Go on with events as they come, also when the supervisor is restarted.
    #[arg(short, long)]
    follow: bool,
}

/// Whose events are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SourceChoice {
    Host,
    Plugins,
    All,
}

impl SourceChoice {
    /// The names of the sources on the wire.
    fn on_wire(self) -> &'static [&'static str] {
        match self {
            Self::Host => &[""],
            Self::Plugins => &["plugins"],
            Self::All => &["", "plugins"],
        }
    }
}

/// How far a source was read.
struct Cursor {
    source: &'static str,
    after: u64,
}

impl ListArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let sources = self.source.on_wire();
        if self.after.is_some() && sources.len() > 1 {
            return Err(Failure::usage(
                "--after is a number of one source, and each numbers its own: add --source host or --source plugins",
            ));
        }
        let mut client = Client::connect(socket).await?;
        let after = self.after.unwrap_or_default();
        let mut cursors: Vec<Cursor> = sources.iter().map(|source| Cursor { source, after }).collect();
        let mut printed = 0_u64;
        loop {
            let mut ended = list(&mut client, &mut cursors, &mut printed, out).await;
            if ended.is_ok() && self.follow {
                ended = follow(&mut client, &mut cursors, out).await;
            }
            if out.is_closed() {
                return Ok(exit::OK);
            }
            match ended {
                Ok(()) if !self.follow => {
                    if printed == 0 && !out.is_json() {
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

async fn subscribe(
    client: &mut Client,
    cursors: &[Cursor],
    kept_only: bool,
) -> Result<Vec<Streaming<HostEvent>>, Status> {
    let mut streams = Vec::with_capacity(cursors.len());
    for Cursor { source, after } in cursors {
        let request = SubscribeRequest { after: *after, kept_only, source: (*source).to_owned() };
        streams.push(client.host.subscribe(request).await?.into_inner());
    }
    Ok(streams)
}

/// Prints the events that are kept, and moves the cursors on.
async fn list(
    client: &mut Client,
    cursors: &mut [Cursor],
    printed: &mut u64,
    out: &mut Output,
) -> Result<(), Status> {
    let mut events = Merged::new(subscribe(client, cursors, true).await?).await?;
    while !out.is_closed() {
        let Some((at, event)) = events.next().await? else { return Ok(()) };
        show(&event, out);
        *printed += 1;
        cursors[at].after = event.number;
    }
    Ok(())
}

/// Prints events as they come until a stream ends, and moves the cursors on.
async fn follow(client: &mut Client, cursors: &mut [Cursor], out: &mut Output) -> Result<(), Status> {
    let streams = subscribe(client, cursors, false).await?.into_iter().enumerate();
    // The end of one is the end of all: their supervisor ends.
    let streams = streams.map(|(at, stream)| {
        let end = futures_util::stream::once(std::future::ready((at, None)));
        stream.map(move |event| (at, Some(event))).chain(end).boxed()
    });
    let mut events = select_all(streams);
    while !out.is_closed() {
        let Some((at, Some(event))) = events.next().await else { return Ok(()) };
        let event = event?;
        show(&event, out);
        cursors[at].after = event.number;
    }
    Ok(())
}

fn show(event: &HostEvent, out: &mut Output) {
    if out.is_json() {
        out.json_line(&json::fields(event));
    } else {
        print(event, out);
    }
}

fn print(event: &HostEvent, out: &mut Output) {
    let color = match event.severity.as_str() {
        "critical" => AnsiColor::Red,
        "warning" => AnsiColor::Yellow,
        _ => AnsiColor::Cyan,
    };
    let count = event.fields.get("count").filter(|count| *count != "1");
    let times = count.map(|count| format!(" ({count} times)")).unwrap_or_default();
    // The supervisor's own sentences name it.
    let plugin = event.fields.get("plugin").filter(|_| event.kind == SOURCE_EVENT);
    let who = plugin.map(|plugin| format!("{plugin}: ")).unwrap_or_default();
    let at = u64::try_from(event.time_unix_ms).unwrap_or_default();
    out.line(
        Line::styled(AnsiColor::BrightBlack.on_default(), timestamp(at))
            .and(sanitized!(" {} ", event.number))
            .and_styled(color.on_default(), sanitized_line(&event.kind))
            .and(sanitized!(
                " {}{}{}",
                sanitized_line(&who),
                sanitized_line(&event.summary),
                sanitized_line(&times)
            )),
    );
    out.flush();
}
