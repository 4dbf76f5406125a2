//! `talon session plan`.

use clap::Args;
use talon_proto::agent::GetSessionRequest;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::plan::{PlanEdit, edit_plan, plan_lines};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;
use crate::terminal_style::uses_words;

/// Show the plan of a session, or change it.
///
/// The changes are: add TEXT, insert N TEXT, reword N TEXT, move N TO, drop N…, done N…, open N…, and clear. N is the
/// number of a step. A turn that runs with the plan goes on with it as it is then; a plan that waits for your approval
/// is approved with `talon approval approve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon session plan 01K0
  talon session plan 01K0 add Run the tests
  talon session plan 01K0 move 3 1
  talon session plan 01K0 --output json | jq -r '.steps[].text'")]
pub(crate) struct PlanArgs {
    /// The session's id.
    #[arg(value_name = "ID")]
    id: String,
    /// What changes: a word, and what it takes. Without it the plan is shown.
    #[arg(value_name = "CHANGE", trailing_var_arg = true)]
    change: Vec<String>,
}

impl PlanArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let edit = match &self.change[..] {
            [] => None,
            words => Some(PlanEdit::parse(&words.join(" ")).map_err(Failure::usage)?),
        };
        let reach = AgentConnection::connect(socket).await?;
        let request =
            GetSessionRequest { session_id: self.id.clone(), page_size: 1, ..GetSessionRequest::default() };
        let answer = reach
            .query(|mut agent| {
                let request = request.clone();
                async move { agent.get_session(request).await }
            })
            .await?;
        let mut plan = answer.session.and_then(|session| session.plan).unwrap_or_default();
        if let Some(edit) = edit {
            plan = edit_plan(&reach, &self.id, &plan, &edit).await?;
        }
        if out.is_json() {
            out.exact_json(&json::fields(&plan));
        } else {
            plan_lines(&plan, uses_words()).into_iter().for_each(|line| out.line(line));
        }
        Ok(exit::OK)
    }
}
