//! `talon notification list`.

use clap::{Args, ValueEnum};
use serde_json::json;
use talon_proto::agent::{ListNotificationsRequest, Notification};
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

/// List notifications, the latest first: what waits, what was delivered, and what was not, with the reason.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon notification list
  talon notification list --state given_up --output json | jq -r '.notifications[].id'"
)]
pub(crate) struct ListArgs {
    /// Only those of this state.
    #[arg(long, value_name = "STATE", value_enum)]
    state: Option<State>,
    /// Only those of this entry.
    #[arg(long, value_name = "ENTRY")]
    entry: Option<String>,
    /// The most lines.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum State {
    Waiting,
    Sending,
    Delivered,
    Refused,
    GivenUp,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Refused => "refused",
            Self::GivenUp => "given_up",
        }
    }
}

impl ListArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let (found, more) = self.fetch(&reach).await?;
        if out.is_json() {
            out.json(&json!({ "notifications": found, "more": more }));
            return Ok(exit::OK);
        }
        if found.is_empty() {
            out.line("no notifications: `talon notification test ENTRY` sends one");
            return Ok(exit::OK);
        }
        let mut table = Table::of(&[
            Column::text("ID", 0),
            Column::text("CREATED", 3),
            Column::text("ENTRY", 0),
            Column::text("KIND", 1),
            Column::text("STATE", 0),
            Column::number("ATTEMPT", 4),
            Column::number("EVENTS", 5),
            Column::text("NEXT", 4),
            Column::prose("SUMMARY", 1),
            Column::prose("NOTE", 2),
        ]);
        let listed = found.len() as u64;
        for one in found {
            table.row(vec![
                one.id.into(),
                timestamp(one.created_unix_ms).into(),
                one.entry.into(),
                one.kind.into(),
                one.state.into(),
                one.attempt.into(),
                one.count.into(),
                one.next_unix_ms.map(|next| timestamp(next).to_string()).unwrap_or_default().into(),
                one.summary.into(),
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

    /// The latest notifications up to the limit, and whether there are more.
    async fn fetch(&self, reach: &AgentConnection) -> Result<(Vec<Notification>, bool), Failure> {
        let fetch = |page_size, page_token| {
            let request = ListNotificationsRequest {
                state: self.state.map(State::word).unwrap_or_default().to_owned(),
                entry: self.entry.clone().unwrap_or_default(),
                page_size,
                page_token,
            };
            async move {
                let page = reach
                    .query(|mut agent| {
                        let request = request.clone();
                        async move { agent.list_notifications(request).await }
                    })
                    .await?;
                Ok((page.notifications, page.next_page_token))
            }
        };
        pages::up_to(self.limit, fetch).await
    }
}
