//! The table of plugins: as many columns as fit, the worst plugin first.

use std::time::{Duration, SystemTime};

use talon_proto::host::{Plugin, Usage};

use crate::show;
use crate::table::{Column, Table};

/// Stands for an unknown value.
const NONE: &str = "–";

/// In order of appearance; on narrow pages the columns with the largest rank are omitted first.
const COLUMNS: [Column; 15] = [
    Column::text("PLUGIN", 0),
    Column::text("STATE", 0),
    Column::number("READY", 8),
    Column::number("PID", 4),
    Column::number("DIED", 3),
    Column::number("BUSY", 2),
    Column::number("CALLS", 1),
    Column::number("ERRORS", 1),
    Column::number("P50", 9),
    Column::number("P99", 2),
    Column::number("MEMORY", 5),
    Column::number("CPU", 6),
    Column::number("ACTIONS", 12),
    Column::number("UP FOR", 10),
    Column::text("BREAKER", 11),
];

/// One row per plugin. `BUSY` is calls in flight, followed by a plus and the queued calls.
pub(super) fn table(plugins: &[Plugin]) -> Table {
    let now = SystemTime::now();
    let mut table = Table::of(&COLUMNS);
    let mut plugins: Vec<&Plugin> = plugins.iter().collect();
    plugins
        .sort_by(|left, right| badness(right).cmp(&badness(left)).then_with(|| left.name.cmp(&right.name)));
    for plugin in plugins {
        let counters = plugin.counters.clone().unwrap_or_default();
        let ready = plugin.instances.iter().filter(|instance| instance.state == "ready").count();
        let usage = usage(plugin);
        let up = plugin.instances.iter().filter_map(|one| show::up_for(one, now)).max();
        let busy = match plugin.calls_waiting {
            0 => plugin.calls_in_flight.to_string(),
            waiting => format!("{}+{waiting}", plugin.calls_in_flight),
        };
        table.row(vec![
            plugin.name.as_str().into(),
            show::state(&plugin.state, &plugin.desired),
            format!("{ready}/{}", plugin.instances.len()).into(),
            pids(plugin).into(),
            plugin.restarts.values().fold(0_u64, |sum, count| sum.saturating_add(*count)).into(),
            busy.into(),
            counters.calls.into(),
            (counters.tool_errors.saturating_add(counters.refusals).saturating_add(counters.faults)).into(),
            took(counters.p50_us).into(),
            took(counters.p99_us).into(),
            usage.as_ref().map_or(NONE.to_owned(), |usage| show::bytes(usage.memory_bytes)).into(),
            usage
                .as_ref()
                .map_or(NONE.to_owned(), |usage| show::short(Duration::from_micros(usage.cpu_us)))
                .into(),
            plugin.actions.into(),
            up.map(show::short).unwrap_or_default().into(),
            plugin.breaker.as_str().into(),
        ]);
    }
    table
}

/// Failures sort before transitions, and those before everything else.
fn badness(plugin: &Plugin) -> u8 {
    match plugin.state.as_str() {
        "failed" | "refused" | "unhealthy" => 3,
        _ if plugin.quarantined || plugin.breaker == "open" || !plugin.replacement_problem.is_empty() => 3,
        "backoff" => 2,
        "ready" | "stopped" => 0,
        _ => 1,
    }
}

/// The main process, and how many others there are.
fn pids(plugin: &Plugin) -> String {
    let pids: Vec<u32> = plugin.instances.iter().map(|one| one.pid).filter(|pid| *pid != 0).collect();
    match pids.as_slice() {
        [] => NONE.to_owned(),
        [pid] => pid.to_string(),
        [pid, more @ ..] => format!("{pid} +{}", more.len()),
    }
}

fn took(us: u64) -> String {
    match us {
        0 => NONE.to_owned(),
        1..=999 => format!("{us}us"),
        1000..=999_999 => format!("{}.{}ms", us / 1000, us / 100 % 10),
        _ => format!("{}.{}s", us / 1_000_000, us / 100_000 % 10),
    }
}

/// The usage of all its processes; `None` if it is not known for any.
fn usage(plugin: &Plugin) -> Option<Usage> {
    plugin.instances.iter().filter_map(|instance| instance.usage.clone()).reduce(|sum, one| Usage {
        cpu_us: sum.cpu_us.saturating_add(one.cpu_us),
        memory_bytes: sum.memory_bytes.saturating_add(one.memory_bytes),
        processes: sum.processes.saturating_add(one.processes),
        source: sum.source,
    })
}

#[cfg(test)]
mod tests {
    use talon_proto::host::{Instance, PluginCounters};

    use super::*;

    fn plugin(name: &str, state: &str) -> Plugin {
        Plugin {
            name: name.to_owned(),
            state: state.to_owned(),
            desired: "up".to_owned(),
            breaker: "closed".to_owned(),
            instances: vec![Instance { state: state.to_owned(), pid: 4_194_304, ..Instance::default() }],
            counters: Some(PluginCounters { calls: 1_234_567, p99_us: 12_345, ..PluginCounters::default() }),
            ..Plugin::default()
        }
    }

    // Promises: CLI-23
    #[test]
    fn the_worst_comes_first_and_eighty_columns_are_enough() {
        let mut wrong = plugin("zed", "ready");
        wrong.quarantined = true;
        let mut table = table(&[plugin("calendar-of-the-office", "ready"), wrong, plugin("jira", "backoff")]);
        table.fit(80);
        let text = table.render(false);
        let names: Vec<&str> =
            text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["zed", "jira", "calendar-of-the-office"]);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let title = text.lines().next().unwrap_or_default();
        for column in ["STATE", "PID", "DIED", "BUSY", "CALLS", "ERRORS", "P99"] {
            assert!(title.contains(column), "{title}");
        }
    }

    #[test]
    fn a_wide_page_has_all_columns() {
        let mut table = table(&[plugin("hello", "ready")]);
        table.fit(200);
        let text = table.render(false);
        assert!(text.contains("ACTIONS") && text.contains("12.3ms") && text.contains("BREAKER"), "{text}");
    }
}
