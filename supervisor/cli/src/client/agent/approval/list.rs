//! `talon approval list`.

use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::json;
use talon_proto::agent::{Approval, ListApprovalsRequest};

use super::find;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{bounded_line, count_of, single_line};
use crate::client::agent::turn::approval::is_pending;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show;
use crate::table::{Column, Table};

/// Bytes of the arguments in a table row; `talon approval show` prints all of them.
const ARGUMENTS_BYTES: usize = 80;

/// List the calls that wait for an approval.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon approval list
  talon approval list --everybody --all --output json"
)]
pub(crate) struct ListArgs {
    /// Include calls that were decided or expired.
    #[arg(long)]
    all: bool,
    /// Calls of all users' sessions, for operators; otherwise only of your own.
    #[arg(long)]
    everybody: bool,
    /// Only calls of this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

impl ListArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let session_id = self.session.unwrap_or_default();
        let request = ListApprovalsRequest { all: self.all, session_id, everybody: self.everybody };
        let approvals = find::fetch_all(&reach, request).await?;
        if out.is_json() {
            out.exact_json(&json!({ "approvals": approvals }));
        } else {
            print(&approvals, SystemTime::now(), out);
        }
        Ok(exit::OK)
    }
}

fn print(approvals: &[Approval], now: SystemTime, out: &mut Output) {
    if approvals.is_empty() {
        out.line("nothing waits for an approval");
        return;
    }
    let mut table = Table::of(&[
        Column::text("APPROVAL", 0),
        Column::text("STATE", 0),
        Column::text("CALL", 0),
        Column::text("ARGUMENTS", 1),
        Column::text("WHY", 2),
        Column::text("SENDER", 5),
        Column::text("SESSION", 4),
        Column::text("EXPIRES IN", 3),
    ]);
    for approval in approvals {
        let args: Vec<String> = approval.args.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let left = match is_pending(approval) && approval.expires_unix_ms > 0 {
            true => {
                let left =
                    show::system_time(approval.expires_unix_ms).duration_since(now).unwrap_or(Duration::ZERO);
                show::short(left)
            }
            false => String::new(),
        };
        let steps = approval.plan.as_ref().map(|plan| plan.steps.len() as u64);
        let (call, why) = match (approval.plugin.as_str(), approval.question.as_str(), steps) {
            (_, _, Some(steps)) => ("plan of the model".to_owned(), count_of(steps, "step")),
            ("", question, None) => {
                ("question of the model".to_owned(), bounded_line(question, ARGUMENTS_BYTES))
            }
            (_, "", None) => (format!("{}.{}", approval.plugin, approval.action), single_line(&approval.why)),
            (plugin, question, None) => {
                (format!("question of {plugin}"), bounded_line(question, ARGUMENTS_BYTES))
            }
        };
        table.row(vec![
            approval.id.as_str().into(),
            approval.state.as_str().into(),
            call.into(),
            bounded_line(&args.join(" "), ARGUMENTS_BYTES).into(),
            why.into(),
            approval.sender.as_str().into(),
            approval.session_id.as_str().into(),
            left.into(),
        ]);
    }
    table.fit(out.columns());
    out.table(&table);
}
