//! `talon shadow stats`.

use clap::Args;
use talon_proto::agent::{GetShadowStatsRequest, GetShadowStatsResponse};
use talon_sanitize::sanitized;

use crate::client::agent::connection::AgentConnection;
use crate::client::agent::formatting::{count, duration, single_line, usd};
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::output::Output;
use crate::show::timestamp;
use crate::table::{Column, Table};

/// Show what each trigger led to, its rate, and what is left of limits and budgets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon shadow stats
  talon shadow stats --output json | jq '.triggers[] | select(.rate_percent < 50)'")]
pub(crate) struct StatsArgs {
    /// Of another sender; needs the role operate.
    #[arg(long, value_name = "SENDER", default_value = "", hide_default_value = true)]
    sender: String,
}

impl StatsArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let reach = AgentConnection::connect(socket).await?;
        let request = GetShadowStatsRequest { sender: self.sender };
        let stats = reach
            .query(|mut agent| {
                let request = request.clone();
                async move { agent.get_shadow_stats(request).await }
            })
            .await?;
        if out.is_json() {
            out.json(&json::fields(&stats));
        } else {
            print(&stats, out);
        }
        Ok(exit::OK)
    }
}

fn print(stats: &GetShadowStatsResponse, out: &mut Output) {
    let state = stats.state.clone().unwrap_or_default();
    if !state.problem.is_empty() && state.enabled {
        out.line(sanitized!("problem: {}", single_line(&state.problem)));
    }
    match (state.enabled, state.paused, state.paused_until_unix_ms) {
        (false, ..) => out.line("it is off: `shadow.enabled: true` in the configuration turns it on"),
        (true, true, Some(until)) => out.line(sanitized!("it rests until {}", timestamp(until))),
        (true, true, None) => out.line("it rests: `talon shadow resume` lets it go on"),
        (true, false, _) => out.line("it is on"),
    }
    out.line(sanitized!(
        "ghosts in the last hour: {} of {}; at least {} between two",
        stats.ghosts_last_hour,
        stats.max_ghosts_per_hour,
        single_line(&duration(stats.cooldown_ms))
    ));
    let tokens = stats.day_budget_tokens.map(|most| format!(" of {}", count(most))).unwrap_or_default();
    let money = stats.day_budget_pico_usd.map(|most| format!(" of {}", usd(most))).unwrap_or_default();
    out.line(sanitized!(
        "today: {}{} tokens, {}{}",
        single_line(&count(stats.tokens_today)),
        single_line(&tokens),
        single_line(&usd(stats.cost_today_pico_usd)),
        single_line(&money)
    ));
    if stats.dropped_by_watchers > 0 {
        out.line(sanitized!(
            "watchers dropped {} observations: they saw more than they could send",
            stats.dropped_by_watchers
        ));
    }
    match stats.watcher_seen_unix_ms {
        Some(at) => out.line(sanitized!("your watcher was heard at {}", timestamp(at))),
        None => out.line("your watcher was not heard since the agent started: `talon watch` starts it"),
    }
    for limit in &stats.watcher_limits {
        out.line(sanitized!("it cannot watch everything: {}", single_line(limit)));
    }
    for repository in &state.muted_repositories {
        out.line(sanitized!("muted: {}", single_line(repository)));
    }
    if stats.triggers.is_empty() {
        out.line("nothing was found yet");
        return;
    }
    out.line("");
    let mut table = Table::of(&[
        Column::text("TRIGGER", 0),
        Column::number("FOUND", 1),
        Column::number("ASKED", 2),
        Column::number("GHOSTS", 0),
        Column::number("APPROVED", 0),
        Column::number("DISMISSED", 0),
        Column::number("EXPIRED", 3),
        Column::number("RATE", 0),
        Column::prose("HELD BACK", 2),
    ]);
    for one in &stats.triggers {
        let held: Vec<String> =
            one.held_back.iter().map(|(reason, times)| format!("{reason} {}", count(*times))).collect();
        table.row(vec![
            one.trigger.clone().into(),
            one.observations.into(),
            one.asked.into(),
            one.ghosts.into(),
            one.approved.into(),
            one.dismissed.into(),
            one.expired.into(),
            format!("{} %", one.rate_percent).into(),
            held.join(", ").into(),
        ]);
    }
    table.fit(out.columns());
    out.table(&table);
}
