//! `talon session compact`.

use clap::Args;
use talon_proto::agent::{CompactSessionRequest, CompactSessionResponse};
use talon_sanitize::{Sanitized, sanitized};

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count, count_of, single_line};
use crate::client::agent::json::compacted;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// Replace the older turns of a session by a summary.
///
/// A model writes the summary, which costs money. The replaced turns stay in the store:
/// `talon session show --all`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon session compact 01K0
  talon session compact 01K0 --keep 2")]
pub(crate) struct CompactArgs {
    /// The session's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Keep this many turns as they are; otherwise 5.
    #[arg(long, value_name = "TURNS", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
}

impl CompactArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request =
            CompactSessionRequest { session_id: self.id.clone(), keep_turns: self.keep.unwrap_or_default() };
        let response = reach.send_once(async move |mut agent| agent.compact_session(request).await).await?;
        if out.is_json() {
            out.json(&compacted(&self.id, &response));
        } else {
            out.line(outcome(&response));
        }
        Ok(exit::OK)
    }
}

/// The outcome in one line.
pub(in crate::client::agent) fn outcome(response: &CompactSessionResponse) -> Sanitized {
    if response.messages == 0 {
        return "nothing is old enough to be summarized".into();
    }
    sanitized!(
        "{} summarized: {} tokens instead of {}",
        count_of(response.messages, "message"),
        single_line(&count(response.tokens_after)),
        single_line(&count(response.tokens_before))
    )
}
