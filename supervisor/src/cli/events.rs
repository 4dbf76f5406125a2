//! `talon events`: what happens to plugins, as it happens.

use anstyle::AnsiColor;
use clap::Args;
use talon_proto::host::{Event, WatchEventsRequest};
use talon_sanitize::inert;

use super::client::Client;
use super::failure::Failure;
use super::line::Line;
use super::output::{Out, shown};
use super::{Global, json, show};
use crate::exit;

/// Print events as they happen: state changes, exits, finished calls, failed health checks.
///
/// It goes on until it is interrupted or the supervisor ends. A reader that is too slow is told how many events it
/// missed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon events
  talon events --plugin hello --count 1
  talon events --output json | jq -r 'select(.kind == \"plugin_exited\") | .message'")]
pub(super) struct EventsArgs {
    /// Only this plugin's.
    #[arg(long, value_name = "PLUGIN")]
    plugin: Option<String>,
    /// End after so many events.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

impl EventsArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Out) -> Result<u8, Failure> {
        let mut client = Client::connect(global).await?;
        let request = WatchEventsRequest { plugin: self.plugin.unwrap_or_default() };
        let response = client.host.watch_events(request).await.map_err(|status| client.failure(&status))?;
        let mut events = response.into_inner();
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 && !out.is_closed() {
            let Some(event) = events.message().await.map_err(|status| client.failure(&status))? else {
                break;
            };
            if out.is_json() {
                out.json_line(&json::event(&event));
            } else {
                print(&event, out);
            }
            left -= 1;
        }
        Ok(exit::OK)
    }
}

fn print(event: &Event, out: &mut Out) {
    let who = match (event.plugin.as_str(), event.instance) {
        ("", _) => "talon".into(),
        (plugin, 0) => shown(plugin),
        (plugin, instance) => inert!("{}/{}", shown(plugin), instance),
    };
    // What the sentence says already is not said again.
    let news =
        event.fields.iter().filter(|(_, value)| !value.is_empty() && !event.message.contains(value.as_str()));
    let mut fields: Vec<String> = news.map(|(key, value)| format!("{key}={value}")).collect();
    fields.sort();
    let text = format!("{} {}", event.message, fields.join(" "));
    out.line(
        Line::styled(AnsiColor::BrightBlack.on_default(), show::stamp(event.unix_ms))
            .and(inert!(" {} ", who))
            .and_styled(AnsiColor::Cyan.on_default(), shown(&event.kind))
            .and(inert!(" {}", shown(text.trim()))),
    );
    out.flush();
}
