//! `talon memory list` and `search`.

use clap::Args;
use serde_json::json;
use talon_proto::agent::{ListMemoriesRequest, Memory};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{bounded_line, count, count_of};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// Memories per request.
const PAGE_SIZE: u32 = 200;
/// Bytes of a memory in a table row; `talon memory show` prints all of it.
const CONTENT_BYTES: usize = 80;

/// List the memories, newest first.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon memory list
  talon memory list --tag workflow --output json | jq '.memories[].workflow.trigger'"
)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    filter: MemoryFilter,
}

/// Search the memories by words in their text.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon memory search invoice
  talon memory search 'green tea' --tag preference")]
pub(crate) struct SearchArgs {
    /// The words to search for.
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    filter: MemoryFilter,
}

#[derive(Debug, Args)]
struct MemoryFilter {
    /// Only memories with this tag. May be repeated: then all tags have to match.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The most memories to list.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl ListArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        self.filter.run(String::new(), socket, out).await
    }
}

impl SearchArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        self.filter.run(self.text, socket, out).await
    }
}

impl MemoryFilter {
    async fn run(self, text: String, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let searched = !text.is_empty() || !self.tags.is_empty();
        let (memories, more) = self.memories(text, &reach).await?;
        if out.is_json() {
            out.exact_json(&json!({ "memories": memories, "more": more }));
            return Ok(exit::OK);
        }
        if memories.is_empty() {
            out.line(if searched {
                "nothing that is remembered is like that"
            } else {
                "nothing is remembered"
            });
            return Ok(exit::OK);
        }
        let mut table = Table::of(&[
            Column::text("MEMORY", 0),
            Column::text("CREATED", 3),
            Column::text("LAST USED", 4),
            Column::number("TIMES", 5),
            Column::text("TAGS", 2),
            Column::text("CONTENT", 1),
        ]);
        let listed = memories.len() as u64;
        for memory in memories {
            let used = match memory.last_used_unix_ms {
                0 => "".into(),
                at => timestamp(at),
            };
            let content = memory.workflow.as_ref().map_or(&memory.content, |workflow| &workflow.trigger);
            table.row(vec![
                memory.id.into(),
                timestamp(memory.created_unix_ms).into(),
                used.into(),
                count(memory.count).into(),
                memory.tags.join(", ").into(),
                bounded_line(content, CONTENT_BYTES).into(),
            ]);
        }
        table.fit(out.columns());
        out.table(&table);
        if more {
            out.err_line(sanitized!(
                "{} shown, and there are more: --limit shows them",
                count_of(listed, "line")
            ));
        }
        Ok(exit::OK)
    }

    async fn memories(&self, text: String, reach: &AgentConnection) -> Result<(Vec<Memory>, bool), Failure> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let mut memories = Vec::new();
        let mut page_token = String::new();
        loop {
            let left = u32::try_from(limit - memories.len()).unwrap_or(PAGE_SIZE);
            let request = ListMemoriesRequest {
                text: text.clone(),
                tags: self.tags.clone(),
                page_size: left.min(PAGE_SIZE),
                page_token,
            };
            let page = reach
                .query(|mut agent| {
                    let request = request.clone();
                    async move { agent.list_memories(request).await }
                })
                .await?;
            memories.extend(page.memories);
            page_token = page.next_page_token;
            if memories.len() >= limit || page_token.is_empty() {
                let more = memories.len() > limit || !page_token.is_empty();
                memories.truncate(limit);
                return Ok((memories, more));
            }
        }
    }
}
