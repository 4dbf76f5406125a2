//! `talon schedule history`.

use clap::Args;
use serde_json::json;
use talon_proto::agent::{ListOccurrencesRequest, Occurrence};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count_of, duration};
use crate::client::agent::pages;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// List what jobs did and will do, the latest planned time first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon schedule history
  talon schedule history digest --output json | jq -r '.occurrences[] | select(.state == \"done\") | .session_id'")]
pub(crate) struct HistoryArgs {
    /// Only this job.
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// The most lines.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Why it failed or was missed; else what an action answered.
fn said(note: String, result: String) -> String {
    if note.is_empty() { result } else { note }
}

impl HistoryArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let (found, more) = self.fetch(&reach).await?;
        if out.is_json() {
            out.json(&json!({ "occurrences": found, "more": more }));
            return Ok(exit::OK);
        }
        if found.is_empty() {
            out.line("nothing yet: `talon schedule next` shows what will run");
            return Ok(exit::OK);
        }
        let mut table = Table::of(&[
            Column::text("PLANNED", 0),
            Column::text("JOB", 0),
            Column::text("STATE", 0),
            Column::text("KIND", 4),
            Column::number("ATTEMPT", 5),
            Column::number("TOOK", 3),
            Column::text("SESSION", 1),
            Column::prose("NOTE", 2),
        ]);
        let listed = found.len() as u64;
        for occurrence in found {
            let took = occurrence.started_unix_ms.zip(occurrence.ended_unix_ms);
            table.row(vec![
                timestamp(occurrence.planned_unix_ms).into(),
                occurrence.job.into(),
                occurrence.state.into(),
                occurrence.kind.into(),
                occurrence.attempt.into(),
                took.map(|(started, ended)| duration(ended.saturating_sub(started)))
                    .unwrap_or_default()
                    .into(),
                occurrence.session_id.into(),
                said(occurrence.note, occurrence.result).into(),
            ]);
        }
        table.fit(out.columns());
        out.table(&table);
        if more {
            out.err_line(sanitized!("{}, and there are more: --limit shows them", count_of(listed, "line")));
        }
        Ok(exit::OK)
    }

    /// The latest occurrences up to the limit, and whether there are more.
    async fn fetch(&self, reach: &AgentConnection) -> Result<(Vec<Occurrence>, bool), Failure> {
        let fetch = |page_size, page_token| {
            let job = self.job.clone().unwrap_or_default();
            let request = ListOccurrencesRequest { job, page_size, page_token };
            async move {
                let page = reach
                    .query(|mut agent| {
                        let request = request.clone();
                        async move { agent.list_occurrences(request).await }
                    })
                    .await?;
                Ok((page.occurrences, page.next_page_token))
            }
        };
        pages::up_to(self.limit, fetch).await
    }
}
