//! `talon approval show`.

use std::time::SystemTime;

use clap::Args;
use talon_proto::agent::Approval;

use super::find;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::turn::approval::lines;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::Table;

/// Show a call exactly as it will run, or ran.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon approval show 01K0
  talon approval show 01K0 --output json | jq -r .args.command")]
pub(crate) struct ShowArgs {
    /// The approval's id.
    #[arg(value_name = "ID")]
    id: String,
}

impl ShowArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let found = find::fetch_one(&reach, &self.id).await?;
        if out.is_json() {
            out.exact_json(&json::fields(&found));
        } else {
            print(&found, out);
        }
        Ok(exit::OK)
    }
}

fn print(approval: &Approval, out: &mut Output) {
    for line in lines(approval, SystemTime::now()) {
        out.line(line);
    }
    out.line("");
    let mut table = Table::new(&[]);
    let mut row = |key: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![key.into(), value.into()]);
        }
    };
    row("state", approval.state.clone());
    row("session", approval.session_id.clone());
    row("sender", approval.sender.clone());
    row("asked", timestamp(approval.asked_unix_ms).into_string());
    if approval.decided_unix_ms > 0 {
        row("decided", format!("{} by {}", timestamp(approval.decided_unix_ms), approval.decided_by));
    }
    row("digest", approval.digest.clone());
    out.table(&table);
}
