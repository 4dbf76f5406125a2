//! `talon schedule check`: when a job would run, without a supervisor.

use std::time::SystemTime;

use clap::Args;
use serde_json::{Value, json};
use talon_error_chain::error_chain;
use talon_schedule::{ClockChange, CronExpression, Recurrence, Timestamp, Zone};

use crate::exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::Table;

/// Check a cron expression and list the times at which it runs.
///
/// It needs no supervisor. An expression has five fields (minute, hour, day of the month, month, day of the
/// week), or six with the second in front; @hourly, @daily, @weekly, @monthly and @yearly stand for the usual
/// ones. At changes of the clock, a job at fixed times runs once for each of them, right after a skipped hour
/// and in the first of two equal hours. A job with a `*` in its time of day runs whenever the clock shows it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon schedule check '0 9 * * 1-5' --timezone Europe/Berlin
  talon schedule check '30 2 * * *' --timezone Europe/Berlin --from 2026-03-28T00:00:00Z --next 3
  talon schedule check @daily --output json | jq -r '.next[].at'

Exit codes:
  0  it is a schedule
  2  it is none, or never runs")]
pub(crate) struct CheckArgs {
    /// The expression, in quotes.
    #[arg(value_name = "CRON")]
    cron: String,
    /// The time zone of its times, such as Europe/Berlin.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,
    /// How many times to list.
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    next: u16,
    /// List the times after this one, such as 2026-03-28T00:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
}

impl CheckArgs {
    pub(crate) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        let cron: CronExpression = self.cron.parse().map_err(|error| usage(&error))?;
        let zone: Zone = self.timezone.parse().map_err(|error| usage(&error))?;
        let from = self.from.as_deref().map_or_else(now, parse_time)?;
        let follows_clock = cron.follows_clock();
        let recurrence = Recurrence::Cron { cron: cron.clone(), zone: zone.clone() };
        let times = recurrence.times_after(from).take(usize::from(self.next));
        if out.is_json() {
            let next: Vec<Value> = times
                .map(|at| {
                    json!({
                        "at": at.to_string(),
                        "local": zone.show(at),
                        "clock_change": recurrence.clock_change(at).map(word),
                    })
                })
                .collect();
            out.json(&json!({
                "cron": cron.as_str(),
                "timezone": zone.name(),
                "follows_clock": follows_clock,
                "next": next,
            }));
            return Ok(exit::OK);
        }
        out.line(if follows_clock {
            "by the clock: at changes of the clock, skipped times do not run and repeated ones run twice"
        } else {
            "at fixed times: at changes of the clock, each runs once"
        });
        let mut table = Table::new(&["UTC", "LOCAL", "NOTE"]);
        for at in times {
            let note = recurrence.clock_change(at).map_or("", note);
            table.row(vec![at.to_string().into(), zone.show(at).into(), note.into()]);
        }
        out.table(&table);
        Ok(exit::OK)
    }
}

fn usage(error: &dyn std::error::Error) -> Failure {
    Failure::usage(error_chain(error))
}

fn now() -> Result<Timestamp, Failure> {
    Timestamp::try_from(SystemTime::now())
        .map_err(|_| Failure::failed("the clock is outside of the years 1 to 9999: set it, or use --from"))
}

fn parse_time(text: &str) -> Result<Timestamp, Failure> {
    text.parse().map_err(|_| {
        Failure::usage(format!(
            "{text:?} is no time: write it like 2026-03-28T00:00:00Z or 2026-03-28T01:00:00+01:00"
        ))
    })
}

fn word(change: ClockChange) -> &'static str {
    match change {
        ClockChange::Skipped => "skipped",
        ClockChange::FirstOfTwo => "first_of_two",
        ClockChange::SecondOfTwo => "second_of_two",
    }
}

fn note(change: ClockChange) -> &'static str {
    match change {
        ClockChange::Skipped => "the clock skips its time: right after",
        ClockChange::FirstOfTwo => "the first of two equal hours",
        ClockChange::SecondOfTwo => "the second of two equal hours",
    }
}
