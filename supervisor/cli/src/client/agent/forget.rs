//! `talon forget`: everything of one sender.

use clap::Args;
use talon_proto::agent::{ForgetSenderRequest, ForgetSenderResponse};
use talon_sanitize::{Sanitized, sanitized};

use super::connection::AgentConnection;
use super::formatting::{count_of, single_line};
use crate::confirm;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;

/// Delete everything that the agent stores of one sender: sessions, memories, approvals and their rules, notifications, ghosts.
///
/// A running turn is cancelled. Memories that others own, too, stay, and so do the records of the audit log and files of
/// `talon backup` and `talon export`. For another sender than yourself you need the role operate.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon forget anna
  talon forget anna --yes --output json")]
pub(crate) struct ForgetSenderArgs {
    /// The sender, as `talon session list --all` shows it.
    #[arg(value_name = "SENDER")]
    sender: String,
    /// Do not ask for confirmation. Without a terminal there is no confirmation anyway.
    #[arg(long)]
    yes: bool,
}

impl ForgetSenderArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let sender = single_line(&self.sender);
        let question = sanitized!(
            "Delete all sessions, memories, approvals, rules, notifications and ghosts of {} for good?",
            sender
        );
        if !self.yes && confirm::is_interactive() && !confirm::is_confirmed(question, out)? {
            out.err_line("nothing was forgotten");
            return Ok(exit::OK);
        }
        let request = ForgetSenderRequest { sender: self.sender };
        let forgotten = reach.send_once(async move |mut agent| agent.forget_sender(request).await).await?;
        if out.is_json() {
            out.json(&json::fields(&forgotten));
            return Ok(exit::OK);
        }
        let ForgetSenderResponse {
            sessions,
            memories,
            approvals,
            rules,
            shared_memories,
            notifications,
            ghosts,
        } = forgotten;
        let parts = [
            (sessions, "session"),
            (memories, "memory"),
            (approvals, "approval"),
            (rules, "rule"),
            (notifications, "notification"),
            (ghosts, "ghost"),
        ];
        let parts: Vec<Sanitized> = parts.into_iter().map(|(number, what)| counted(number, what)).collect();
        out.line(sanitized!("forgot of {}: {}", sender, Sanitized::join(parts, ", ")));
        if shared_memories > 0 {
            let shared = counted(shared_memories, "memory");
            out.line(sanitized!(
                "stayed, since others own them, too: {}; `talon memory list` shows them",
                shared
            ));
        }
        Ok(exit::OK)
    }
}

fn counted(number: u64, what: &'static str) -> Sanitized {
    match (number, what) {
        (1, _) | (_, "session" | "approval" | "rule" | "notification" | "ghost") => count_of(number, what),
        _ => sanitized!("{} memories", number),
    }
}
