//! `talon memory show`.

use clap::Args;
use talon_proto::agent::{GetMemoryRequest, Memory};
use talon_sanitize::{Raw, inert};

use super::super::super::Global;
use super::super::super::failure::Failure;
use super::super::super::output::Out;
use super::super::super::show::stamp;
use super::super::super::table::Table;
use super::super::json::memory;
use super::super::reach::Reach;
use super::super::words::{count, one};
use crate::exit;

/// Show one memory in full.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon memory show 01K0")]
pub(in crate::cli) struct ShowArgs {
    /// The memory's id.
    #[arg(value_name = "ID")]
    id: String,
}

impl ShowArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Out) -> Result<u8, Failure> {
        let reach = Reach::connect(global).await?;
        let request = GetMemoryRequest { id: self.id };
        let found = reach
            .ask(|mut agent| {
                let request = request.clone();
                async move { agent.get_memory(request).await }
            })
            .await?;
        if out.is_json() {
            out.json(&memory(&found));
        } else {
            print(&found, out);
        }
        Ok(exit::OK)
    }
}

fn print(memory: &Memory, out: &mut Out) {
    let mut table = Table::new(&[]);
    let mut row = |key: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![key.into(), value.into()]);
        }
    };
    row("memory", memory.id.clone());
    row("tags", memory.tags.join(", "));
    row("source", memory.source.clone());
    row("created", stamp(memory.created_unix_ms).into_string());
    if memory.last_used_unix_ms > 0 {
        row("last used", stamp(memory.last_used_unix_ms).into_string());
    }
    row("times", count(memory.count));
    if let Some(workflow) = &memory.workflow {
        row("asked for", workflow.trigger.clone());
        row("outcome", workflow.outcome.clone());
    }
    out.table(&table);
    if !memory.content.is_empty() {
        out.line("");
        out.text(&Raw::from(&memory.content).text());
    }
    if let Some(workflow) = &memory.workflow {
        out.line("");
        for step in &workflow.steps {
            out.line(inert!("{}. {}.{}", step.order, one(&step.plugin), one(&step.action)));
        }
    }
}
