//! `talon shadow log`.

use clap::Args;
use serde_json::json;
use talon_proto::agent::{ListShadowLogRequest, ShadowLogEntry};
use talon_sanitize::sanitized;

use super::show::kinds;
use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count_of, usd};
use crate::client::agent::pages;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// Show what left for a model, the latest first: how many bytes of which kind, to which model, and at what cost.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow log
  talon shadow log --output json | jq '[.entries[].cost_pico_usd] | add'")]
pub(crate) struct LogArgs {
    /// Everybody's; needs the role operate.
    #[arg(long)]
    all: bool,
    /// The most lines.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl LogArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let (found, more) = self.fetch(&reach).await?;
        if out.is_json() {
            out.json(&json!({ "entries": found, "more": more }));
            return Ok(exit::OK);
        }
        if found.is_empty() {
            out.line("nothing was sent to a model");
            return Ok(exit::OK);
        }
        let mut table = Table::of(&[
            Column::text("TIME", 0),
            Column::text("TRIGGER", 0),
            Column::text("OUTCOME", 1),
            Column::text("MODELS", 0),
            Column::text("LOCAL", 2),
            Column::prose("SENT", 0),
            Column::text("COST", 1),
            Column::text("GHOST", 3),
            Column::prose("NOTE", 2),
        ]);
        let listed = found.len() as u64;
        for one in found {
            let sent = kinds(&one);
            table.row(vec![
                timestamp(one.unix_ms).into(),
                one.trigger.into(),
                one.outcome.into(),
                one.models.join(", ").into(),
                if one.local { "yes" } else { "no" }.into(),
                sent.into(),
                usd(one.cost_pico_usd).into(),
                one.ghost_id.into(),
                one.note.into(),
            ]);
        }
        table.fit(out.columns());
        out.table(&table);
        if more {
            out.err_line(sanitized!("{}, and there are more: --limit shows them", count_of(listed, "line")));
        }
        Ok(exit::OK)
    }

    /// The latest entries up to the limit, and whether there are more.
    async fn fetch(&self, reach: &AgentConnection) -> Result<(Vec<ShadowLogEntry>, bool), Failure> {
        let fetch = |page_size, page_token| {
            let request = ListShadowLogRequest { everybody: self.all, page_size, page_token };
            async move {
                let page = reach
                    .query(|mut agent| {
                        let request = request.clone();
                        async move { agent.list_shadow_log(request).await }
                    })
                    .await?;
                Ok((page.entries, page.next_page_token))
            }
        };
        pages::up_to(self.limit, fetch).await
    }
}
