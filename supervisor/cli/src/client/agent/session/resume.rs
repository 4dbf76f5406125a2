//! `talon session resume`.

use clap::Args;
use serde_json::json;
use talon_proto::agent::ResumeSessionRequest;
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::single_line;
use crate::client::agent::json::session;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// Make an idle session active again and continue its interrupted turn.
///
/// A turn that was interrupted by a restart of the agent continues where it stopped: no tool call runs twice.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon session resume 01K0
  talon chat --session 01K0                    # resumes it, and follows")]
pub(crate) struct ResumeArgs {
    /// The session's id.
    #[arg(value_name = "ID")]
    id: String,
}

impl ResumeArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = ResumeSessionRequest { session_id: self.id.clone() };
        let response = reach.send_once(async move |mut agent| agent.resume_session(request).await).await?;
        if out.is_json() {
            let session = response.session.as_ref().map(session);
            out.json(&json!({ "session": session, "continues": response.continues }));
        } else if response.continues {
            let id = single_line(&self.id);
            out.line(sanitized!(
                "{} is active, and its turn continues: follow it with `talon chat --session {}`",
                id,
                id
            ));
        } else {
            out.line(sanitized!("{} is active", single_line(&self.id)));
        }
        Ok(exit::OK)
    }
}
