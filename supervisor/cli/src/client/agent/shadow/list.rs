//! `talon shadow list`.

use clap::{Args, ValueEnum};
use serde_json::json;
use talon_proto::agent::{Ghost, ListGhostsRequest};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::count_of;
use crate::client::agent::pages;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// List ghosts, the latest first: what waits, and what was decided.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon shadow list
  talon shadow list --state dismissed --output json | jq -r '.ghosts[].rule'"
)]
pub(crate) struct ListArgs {
    /// Only those of this state.
    #[arg(long, value_name = "STATE", value_enum)]
    state: Option<State>,
    /// Everybody's; needs the role operate.
    #[arg(long)]
    all: bool,
    /// The most lines.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    Waiting,
    Approved,
    Dismissed,
    Snoozed,
    Expired,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Dismissed => "dismissed",
            Self::Snoozed => "snoozed",
            Self::Expired => "expired",
        }
    }
}

impl ListArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let (found, more) = self.fetch(&reach).await?;
        if out.is_json() {
            out.json(&json!({ "ghosts": found, "more": more }));
            return Ok(exit::OK);
        }
        if found.is_empty() {
            out.line("no ghosts: `talon shadow stats` says what was seen");
            return Ok(exit::OK);
        }
        let mut table = Table::of(&[
            Column::text("ID", 0),
            Column::text("CREATED", 3),
            Column::text("STATE", 0),
            Column::text("CONFIDENCE", 3),
            Column::prose("TRIGGER", 1),
            Column::prose("PROPOSAL", 0),
            Column::text("SESSION", 4),
        ]);
        let listed = found.len() as u64;
        for one in found {
            table.row(vec![
                one.id.into(),
                timestamp(one.created_unix_ms).into(),
                one.state.into(),
                one.confidence.into(),
                one.trigger.into(),
                one.proposal.into(),
                one.session_id.into(),
            ]);
        }
        table.fit(out.columns());
        out.table(&table);
        if more {
            out.err_line(sanitized!("{}, and there are more: --limit shows them", count_of(listed, "line")));
        }
        Ok(exit::OK)
    }

    /// The latest ghosts up to the limit, and whether there are more.
    async fn fetch(&self, reach: &AgentConnection) -> Result<(Vec<Ghost>, bool), Failure> {
        let fetch = |page_size, page_token| {
            let state = self.state.map(State::word).unwrap_or_default().to_owned();
            let request = ListGhostsRequest { state, everybody: self.all, page_size, page_token };
            async move {
                let page = reach
                    .query(|mut agent| {
                        let request = request.clone();
                        async move { agent.list_ghosts(request).await }
                    })
                    .await?;
                Ok((page.ghosts, page.next_page_token))
            }
        };
        pages::up_to(self.limit, fetch).await
    }
}
