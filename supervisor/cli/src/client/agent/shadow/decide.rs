//! `talon shadow approve`, `dismiss` and `snooze`.

use std::time::Duration;

use clap::Args;
use talon_proto::agent::{DecideGhostRequest, Ghost};
use talon_sanitize::sanitized;

use super::show::{fetch, print};
use crate::arguments::timeout;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;
use crate::show::timestamp;

/// Have a proposal done: an ordinary turn begins in a session of its own, with the proposal as its goal.
///
/// Tools, approvals and budgets hold in it as ever.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow approve 01K0
  talon shadow approve 01K0 --action 'Run tests' --yes")]
pub(crate) struct ApproveArgs {
    /// The ghost's id, or a beginning of it that no other has.
    #[arg(value_name = "ID")]
    id: String,
    /// One of its other actions, by the label, in place of the proposal.
    #[arg(long, value_name = "LABEL")]
    action: Option<String>,
    /// Do not ask for confirmation. Without a terminal there is no confirmation anyway.
    #[arg(long)]
    yes: bool,
}

/// Dismiss a ghost. Its trigger is heard less often from now on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow dismiss 01K0")]
pub(crate) struct DismissArgs {
    /// The ghost's id, or a beginning of it that no other has.
    #[arg(value_name = "ID")]
    id: String,
}

/// Have a ghost come back later.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow snooze 01K0
  talon shadow snooze 01K0 --for 2h")]
pub(crate) struct SnoozeArgs {
    /// The ghost's id, or a beginning of it that no other has.
    #[arg(value_name = "ID")]
    id: String,
    /// For how long; at most 7d.
    #[arg(long = "for", value_name = "DURATION", default_value = "1h", value_parser = timeout)]
    time: Duration,
}

impl ApproveArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let ghost = fetch(&reach, &self.id).await?.ghost.unwrap_or_default();
        if !out.is_json() {
            print(&ghost, out);
        }
        if !self.yes && confirm::is_interactive() && !confirm::is_confirmed("Have it done?".into(), out)? {
            out.err_line("nothing was decided");
            return Ok(exit::OK);
        }
        let decision = if self.action.is_some() { "custom" } else { "approve" };
        let request = DecideGhostRequest {
            id: ghost.id,
            decision: decision.to_owned(),
            label: self.action.unwrap_or_default(),
            ..DecideGhostRequest::default()
        };
        decide(&reach, request, out).await
    }
}

impl DismissArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = DecideGhostRequest {
            id: self.id,
            decision: "dismiss".to_owned(),
            ..DecideGhostRequest::default()
        };
        decide(&reach, request, out).await
    }
}

impl SnoozeArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = DecideGhostRequest {
            id: self.id,
            decision: "snooze".to_owned(),
            snooze_ms: u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            ..DecideGhostRequest::default()
        };
        decide(&reach, request, out).await
    }
}

async fn decide(
    reach: &AgentConnection,
    request: DecideGhostRequest,
    out: &mut Output,
) -> Result<u8, Failure> {
    let decided: Ghost = reach.send_once(async move |mut agent| agent.decide_ghost(request).await).await?;
    if out.is_json() {
        out.json(&json::fields(&decided));
        return Ok(exit::OK);
    }
    let (state, id) = (single_line(&decided.state), single_line(&decided.id));
    match (decided.snoozed_until_unix_ms, decided.session_id.as_str()) {
        (Some(until), _) => out.line(sanitized!("{} {} until {}", state, id, timestamp(until))),
        (None, "") => out.line(sanitized!("{} {}", state, id)),
        (None, session) => {
            let session = single_line(session);
            out.line(sanitized!("{} {}: `talon session show {}` shows its turn", state, id, session));
        }
    }
    Ok(exit::OK)
}
