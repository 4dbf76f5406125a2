//! `talon session delete`.

use clap::Args;
use serde_json::json;
use talon_proto::agent::DeleteSessionRequest;
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count_of, single_line};
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// Delete sessions with all their messages. A running turn is cancelled.
#[derive(Debug, Args)]
#[command(
    visible_alias = "rm",
    after_help = "Examples:
  talon session delete 01K0
  talon session delete 01K0 01K1 --yes"
)]
pub(crate) struct DeleteArgs {
    /// The sessions' ids.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Do not ask for confirmation. Without a terminal there is no confirmation anyway.
    #[arg(long)]
    yes: bool,
}

impl DeleteArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let what = count_of(self.ids.len() as u64, "session");
        if !self.yes
            && confirm::is_interactive()
            && !confirm::is_confirmed(sanitized!("Delete {} for good?", what), out)?
        {
            out.err_line("nothing was deleted");
            return Ok(exit::OK);
        }
        for id in &self.ids {
            let request = DeleteSessionRequest { session_id: id.clone() };
            reach.send_once(async move |mut agent| agent.delete_session(request).await).await?;
            if !out.is_json() {
                out.line(sanitized!("deleted {}", single_line(id)));
            }
        }
        if out.is_json() {
            out.json(&json!({ "deleted": self.ids }));
        }
        Ok(exit::OK)
    }
}
