//! `talon reload`: makes a running supervisor reread its configuration.

use clap::Args;
use talon_proto::host::{PluginChange, ReloadRequest, ReloadResponse};
use talon_sanitize::sanitized;

use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::show::counted;
use crate::table::Table;
use crate::transient_bar::TransientBar;

/// Make the supervisor reread its configuration, as SIGHUP does.
///
/// The new configuration is checked as a whole and compared with the active one, and only changes are
/// applied: a plugin whose program, arguments or jail differ gets new processes next to the old ones, and no
/// call is lost. A refused configuration changes nothing. Files of plugins with unchanged configuration are
/// not checked; use `talon plugin reload` for that.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon reload --dry-run
  talon reload
  talon reload --output json | jq '.needs_restart'

It ends with 6 if the configuration is refused, and with 4 if a plugin was kept as it was because its new processes did not become
ready, or was refused.")]
pub(crate) struct ReloadArgs {
    /// Only report what would be done.
    #[arg(long)]
    dry_run: bool,
}

impl ReloadArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let waiting = TransientBar::spinner("reading the configuration anew");
        let response = client.host.reload(ReloadRequest { dry_run: self.dry_run }).await;
        drop(waiting);
        let response = response.map_err(|status| client.failure(&status))?.into_inner();
        if out.is_json() {
            out.json(&json::fields(&response));
        } else {
            print(&response, self.dry_run, out);
        }
        let held_back = response.plugins.iter().any(|change| matches!(&*change.what, "kept" | "refused"));
        Ok(match (response.accepted, held_back) {
            (false, _) => exit::CONFIG,
            (true, true) => exit::HOST_FAULT,
            (true, false) => exit::OK,
        })
    }
}

fn print(response: &ReloadResponse, dry_run: bool, out: &mut Output) {
    let file = match response.config_file.as_str() {
        "" => "the built-in defaults",
        file => file,
    };
    if !response.accepted {
        out.line(sanitized!("{} is refused, and nothing was changed:", sanitized_line(file)));
        for problem in &response.problems {
            out.line(sanitized!("  {}", sanitized_line(problem)));
        }
        return;
    }
    let verb = if dry_run { "would be in force" } else { "is in force" };
    out.line(sanitized!("{} {}", sanitized_line(file), verb));
    let lists = [
        ("warning", &response.warnings),
        ("changed", &response.changed),
        ("after the next start of talon", &response.needs_restart),
    ];
    for (what, texts) in lists {
        for text in texts {
            out.line(sanitized!("  {}: {}", what, sanitized_line(text)));
        }
    }
    if !response.plugins.is_empty() {
        let mut table = Table::new(&["PLUGIN", "WHAT", "REASON"]);
        for PluginChange { plugin, what, reason } in &response.plugins {
            table.row(vec![plugin.as_str().into(), what.as_str().into(), reason.as_str().into()]);
        }
        out.line("");
        out.table(&table);
    }
    let left = counted(response.left.into(), "plugin");
    out.line(sanitized!("{} left as they are", sanitized_line(left)));
}
