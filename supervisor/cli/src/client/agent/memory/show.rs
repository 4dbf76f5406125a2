//! `talon memory show`.

use clap::Args;
use talon_proto::agent::{GetMemoryRequest, Memory};
use talon_sanitize::{Raw, sanitized};

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count, single_line};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::Table;

/// Show one memory in full.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon memory show 01K0")]
pub(crate) struct ShowArgs {
    /// The memory's id.
    #[arg(value_name = "ID")]
    id: String,
}

impl ShowArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = GetMemoryRequest { id: self.id };
        let found = reach
            .query(|mut agent| {
                let request = request.clone();
                async move { agent.get_memory(request).await }
            })
            .await?;
        if out.is_json() {
            out.exact_json(&json::fields(&found));
        } else {
            print(&found, out);
        }
        Ok(exit::OK)
    }
}

fn print(memory: &Memory, out: &mut Output) {
    let mut table = Table::new(&[]);
    let mut row = |key: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![key.into(), value.into()]);
        }
    };
    row("memory", memory.id.clone());
    row("tags", memory.tags.join(", "));
    row("source", memory.source.clone());
    row("created", timestamp(memory.created_unix_ms).into_string());
    if memory.last_used_unix_ms > 0 {
        row("last used", timestamp(memory.last_used_unix_ms).into_string());
    }
    row("times", count(memory.count));
    if let Some(workflow) = &memory.workflow {
        row("asked for", workflow.trigger.clone());
        row("outcome", workflow.outcome.clone());
    }
    out.table(&table);
    if !memory.content.is_empty() {
        out.line("");
        out.terminal_text(&Raw::from(&memory.content).terminal_text());
    }
    if let Some(workflow) = &memory.workflow {
        out.line("");
        for step in &workflow.steps {
            out.line(sanitized!(
                "{}. {}.{}",
                step.order,
                single_line(&step.plugin),
                single_line(&step.action)
            ));
        }
    }
}
