//! `talon notification retry` and `test`.

use clap::Args;
use talon_proto::agent::{RetryNotificationsRequest, TestNotificationRequest};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count_of, single_line};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json::fields;
use crate::output::Output;

/// The state of a notification that its sink has.
const DELIVERED: &str = "delivered";

/// Have notifications be delivered after all that were refused or given up; those that wait for another attempt are
/// tried at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon notification retry 01K0ABCDEFGHJKMNPQRSTVWXYZ
  talon notification retry --all")]
pub(crate) struct RetryArgs {
    /// The notification, as `talon notification list` shows it.
    #[arg(value_name = "ID", required_unless_present = "all")]
    id: Option<String>,
    /// All of them.
    #[arg(long, conflicts_with = "id")]
    all: bool,
}

/// Send a test to one entry, and wait for the outcome of the first attempt.
///
/// It goes at once, whatever kinds of events the entry takes, and also in its quiet hours. The exit code is 0 if it
/// was delivered, and 1 if not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon notification test ops-mail")]
pub(crate) struct TestArgs {
    /// The entry's name.
    #[arg(value_name = "ENTRY")]
    entry: String,
}

impl RetryArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = RetryNotificationsRequest { id: self.id.unwrap_or_default() };
        let answer = reach.send_once(async |mut agent| agent.retry_notifications(request).await).await?;
        if out.is_json() {
            out.json(&fields(&answer));
        } else if answer.notifications == 0 {
            out.line("nothing was refused or given up, and nothing waits for another attempt");
        } else {
            let tried = count_of(answer.notifications, "notification");
            out.line(sanitized!("tried again: {}; `talon notification list` shows how", tried));
        }
        Ok(exit::OK)
    }
}

impl TestArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = TestNotificationRequest { entry: self.entry };
        let sent = reach.send_once(async |mut agent| agent.test_notification(request).await).await?;
        let delivered = sent.state == DELIVERED;
        if out.is_json() {
            out.json(&fields(&sent));
        } else if delivered {
            let (entry, id) = (single_line(&sent.entry), single_line(&sent.id));
            out.line(sanitized!("{} has it: {}", entry, id));
        } else {
            let (id, state) = (single_line(&sent.id), single_line(&sent.state));
            out.line(sanitized!("{} is {}: {}", id, state, single_line(&sent.note)));
        }
        Ok(if delivered { exit::OK } else { exit::TOOL_ERROR })
    }
}
