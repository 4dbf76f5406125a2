//! `talon plugin logs`.

use anstyle::{AnsiColor, Style};
use clap::Args;
use talon_proto::host::{LogLine, LogsRequest};
use talon_sanitize::sanitized;

use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::line::{Line, sanitized_line};
use crate::output::Output;
use crate::{json, show};

/// Print the lines that a plugin wrote to stdout and stderr.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon plugin logs hello --tail 20
  talon plugin logs hello -f --output json | jq -r 'select(.level == \"error\") | .text'")]
pub(crate) struct LogsArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
    /// Keep printing new lines.
    #[arg(short, long)]
    follow: bool,
    /// Only this many of the last lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    tail: Option<u32>,
}

impl LogsArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let request =
            LogsRequest { plugin: self.name, follow: self.follow, tail: self.tail.unwrap_or_default() };
        let response = client.host.logs(request).await.map_err(|status| client.failure(&status))?;
        let mut lines = response.into_inner();
        while !out.is_closed() {
            let Some(line) = lines.message().await.map_err(|status| client.failure(&status))? else { break };
            if out.is_json() {
                out.json_line(&json::fields(&line));
            } else {
                print(&line, out);
            }
            if self.follow {
                out.flush();
            }
        }
        Ok(exit::OK)
    }
}

fn print(line: &LogLine, out: &mut Output) {
    let who =
        sanitized!(" {}/{} {}: ", sanitized_line(&line.plugin), line.instance, sanitized_line(&line.stream));
    out.line(
        Line::styled(AnsiColor::BrightBlack.on_default(), show::timestamp(line.unix_ms))
            .and(" ")
            .and_styled(level_style(&line.level), sanitized!("{:5}", sanitized_line(&line.level)))
            .and(who)
            .and(sanitized_line(&line.text)),
    );
}

fn level_style(level: &str) -> Style {
    match level {
        "error" => AnsiColor::Red.on_default(),
        "warn" => AnsiColor::Yellow.on_default(),
        "info" => AnsiColor::Green.on_default(),
        _ => AnsiColor::BrightBlack.on_default(),
    }
}
