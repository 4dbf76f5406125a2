//! `talon session list`.

use clap::Args;
use serde_json::{Value, json};
use talon_proto::agent::{GetStatusRequest, ListSessionsRequest, RetentionStatus, Session};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{bounded_line, count, count_of, single_line, usd};
use crate::client::agent::json::session;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// Sessions per request; the agent's maximum.
const PAGE_SIZE: u32 = 200;
/// Bytes of a title in a table row.
const TITLE_BYTES: usize = 60;

/// List sessions, most recently used first.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:
  talon session list
  talon session list --limit 1000 --output json | jq -r '.sessions[] | select(.turn == \"waiting\") | .id'"
)]
pub(crate) struct ListArgs {
    /// Sessions of all users, for operators; otherwise only your own.
    #[arg(long)]
    all: bool,
    /// Only sessions of this channel, such as cli.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// The most sessions to list.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl ListArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let (sessions, more) = fetch(&reach, self.all, self.channel.as_deref(), self.limit).await?;
        if out.is_json() {
            out.json(&json!({ "sessions": sessions.iter().map(session).collect::<Value>(), "more": more }));
            return Ok(exit::OK);
        }
        if sessions.is_empty() {
            out.line("no sessions: begin one with `talon chat` or `talon ask`");
            return Ok(exit::OK);
        }
        let mut table = Table::of(&[
            Column::text("SESSION", 0),
            Column::text("UPDATED", 3),
            Column::text("TURN", 0),
            Column::text("SENDER", if self.all { 0 } else { 5 }),
            Column::text("CHANNEL", 6),
            Column::number("MESSAGES", 2),
            Column::number("COST", 4),
            Column::prose("TITLE", 1),
        ]);
        let listed = sessions.len() as u64;
        let deletions = sessions.iter().map(|session| session.delete_unix_ms).filter(|at| *at > 0);
        let next_deletion = deletions.min();
        for session in sessions {
            table.row(vec![
                session.id.into(),
                timestamp(session.updated_unix_ms).into(),
                session.turn.into(),
                session.sender.into(),
                session.channel.into(),
                count(session.messages).into(),
                usd(session.cost_pico_usd).into(),
                bounded_line(&session.title, TITLE_BYTES).into(),
            ]);
        }
        table.fit(out.columns());
        out.table(&table);
        if let Some(at) = next_deletion {
            out.err_line(sanitized!(
                "without another message the oldest of these is deleted at {} (agent.sessions.delete_after)",
                timestamp(at)
            ));
            let status = reach.query(|mut agent| async move { agent.get_status(GetStatusRequest {}).await });
            // The list is whole without it.
            let retention = status.await.ok().and_then(|status| status.retention);
            if let Some(retention) = retention {
                print_retention(&retention, out);
            }
        }
        if more {
            out.err_line(sanitized!(
                "{}, and there are more: --limit shows them",
                count_of(listed, "session")
            ));
        }
        Ok(exit::OK)
    }
}

/// Prints where sessions are written before they are deleted, and why they are not deleted.
fn print_retention(retention: &RetentionStatus, out: &mut Output) {
    let RetentionStatus { export_directory, exported_files, exported_bytes, deleted, problem, .. } =
        retention;
    if !export_directory.is_empty() {
        out.err_line(sanitized!(
            "{} has {} of {} bytes of deleted sessions; {} deleted since the agent started",
            single_line(export_directory),
            count_of(*exported_files, "file"),
            single_line(&count(*exported_bytes)),
            single_line(&count(*deleted))
        ));
    }
    if !problem.is_empty() {
        out.err_line(single_line(problem));
    }
}

/// The sessions that were used last, up to the limit, and whether there are more.
pub(in crate::client::agent) async fn fetch(
    reach: &AgentConnection,
    all: bool,
    channel: Option<&str>,
    limit: u32,
) -> Result<(Vec<Session>, bool), Failure> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut sessions = Vec::new();
    let mut page_token = String::new();
    loop {
        let left = u32::try_from(limit - sessions.len()).unwrap_or(PAGE_SIZE);
        let request = ListSessionsRequest {
            all,
            channel: channel.unwrap_or_default().to_owned(),
            page_size: left.min(PAGE_SIZE),
            page_token,
        };
        let page = reach
            .query(|mut agent| {
                let request = request.clone();
                async move { agent.list_sessions(request).await }
            })
            .await?;
        sessions.extend(page.sessions);
        page_token = page.next_page_token;
        if sessions.len() >= limit || page_token.is_empty() {
            let more = sessions.len() > limit || !page_token.is_empty();
            sessions.truncate(limit);
            return Ok((sessions, more));
        }
    }
}
