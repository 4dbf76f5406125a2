//! `talon shadow follow`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use talon_proto::agent::ghost_event::Kind;
use talon_proto::agent::{FollowGhostsRequest, ShadowEvent};
use talon_sanitize::sanitized;
use tokio::time::sleep;
use tonic::{Code, Status};

use super::show::print;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;

/// The wait before an agent that is being replaced is asked again.
const RECONNECT_WAIT: Duration = Duration::from_secs(1);

/// Show ghosts as they come and change, until it is interrupted: each change once, also when the agent restarts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow follow
  talon shadow follow --output json | jq --unbuffered -r 'select(.state == \"waiting\").proposal'")]
pub(crate) struct FollowArgs {
    /// Also observations, before the policy decides about them.
    #[arg(long)]
    events: bool,
    /// Also the ghosts that are there already.
    #[arg(long)]
    all: bool,
}

impl FollowArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        // Sequences are not less than the time, so that now is one, too.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let mut after = if self.all { 0 } else { now };
        loop {
            let request =
                FollowGhostsRequest { after, events: self.events, ..FollowGhostsRequest::default() };
            let ended = follow(&reach, request, &mut after, out).await;
            if out.is_closed() {
                return Ok(exit::OK);
            }
            match ended {
                // It restarts, or is replaced.
                Ok(()) => {}
                Err(status)
                    if matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled) => {}
                Err(status) => return Err(reach.failure(&status)),
            }
            sleep(RECONNECT_WAIT).await;
        }
    }
}

/// Prints what comes until the stream ends; `after` is the last change that was printed.
async fn follow(
    reach: &AgentConnection,
    request: FollowGhostsRequest,
    after: &mut u64,
    out: &mut Output,
) -> Result<(), Status> {
    let mut stream = reach.agent.grpc().follow_ghosts(request).await?.into_inner();
    while let Some(event) = stream.message().await? {
        match event.kind {
            Some(Kind::Ghost(ghost)) => {
                *after = ghost.sequence;
                if out.is_json() {
                    out.json_line(&json::fields(&ghost));
                } else {
                    out.line(sanitized!("{}:", single_line(&ghost.state)));
                    print(&ghost, out);
                }
            }
            Some(Kind::Event(ShadowEvent { observation: Some(seen), .. })) => {
                if out.is_json() {
                    out.json_line(&json::fields(&seen));
                } else {
                    let (kind, subject) = (single_line(&seen.kind), single_line(&seen.subject));
                    out.line(sanitized!("seen: {} {} {}", kind, subject, single_line(&seen.finding)));
                }
            }
            Some(Kind::Event(_) | Kind::CaughtUp(_)) | None => {}
        }
        out.flush();
        if out.is_closed() {
            break;
        }
    }
    Ok(())
}
