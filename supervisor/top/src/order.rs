//! Filters and sorts the plugins.

use std::cmp::Ordering;

use crate::rates::AllRates;
use crate::reading::{Plugin, Reading};

/// What to sort plugins by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SortKey {
    /// Failures first, then by activity.
    #[default]
    Severity,
    Name,
    Calls,
    Errors,
    Latency,
    Cpu,
    Memory,
    InFlight,
    LogLines,
}

/// All sort keys, with their keyboard keys and names.
pub(crate) const ALL: [(SortKey, char, &str); 9] = [
    (SortKey::Severity, 'w', "worst"),
    (SortKey::Name, 'n', "name"),
    (SortKey::Calls, 'c', "calls/s"),
    (SortKey::Errors, 'e', "errors/s"),
    (SortKey::Latency, 'l', "latency"),
    (SortKey::Cpu, 'u', "CPU"),
    (SortKey::Memory, 'm', "memory"),
    (SortKey::InFlight, 'f', "in flight"),
    (SortKey::LogLines, 'o', "log lines"),
];

impl SortKey {
    pub(crate) fn name(self) -> &'static str {
        ALL.iter().find(|(by, ..)| *by == self).map_or("", |(_, _, name)| name)
    }

    /// The value on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Severity => "worst",
            Self::Name => "name",
            Self::Calls => "calls",
            Self::Errors => "errors",
            Self::Latency => "latency",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::InFlight => "in-flight",
            Self::LogLines => "log-lines",
        }
    }

    /// The next sort key.
    pub(crate) fn next(self) -> Self {
        let at = ALL.iter().position(|(by, ..)| *by == self).unwrap_or_default();
        ALL[(at + 1) % ALL.len()].0
    }
}

/// The severity: 0 fine, 1 needs watching, 2 failed.
pub(crate) fn badness(plugin: &Plugin) -> u8 {
    match plugin.state.as_str() {
        "failed" | "refused" | "unhealthy" => 2,
        _ if plugin.quarantined || !plugin.replacement_problem.is_empty() || plugin.breaker == "open" => 2,
        "backoff" | "starting" | "handshaking" | "draining" | "discovered" => 1,
        "stopped" if plugin.desired == "up" => 1,
        _ if plugin.changed > 0 || plugin.breaker == "half-open" => 1,
        _ => 0,
    }
}

/// The plugins whose name or state contains the filter, sorted.
pub(crate) fn shown<'r>(
    reading: &'r Reading,
    rates: &AllRates,
    filter: &str,
    by: SortKey,
    reversed: bool,
) -> Vec<&'r Plugin> {
    let filter = filter.to_lowercase();
    let mut plugins: Vec<&Plugin> = reading
        .plugins
        .iter()
        .filter(|plugin| plugin.name.to_lowercase().contains(&filter) || plugin.state.contains(&filter))
        .collect();
    plugins.sort_by(|left, right| {
        let order = compare(left, right, rates, by);
        // Equal plugins keep their order while numbers change.
        let order = if reversed { order.reverse() } else { order };
        order.then_with(|| left.name.cmp(&right.name))
    });
    plugins
}

/// Descending, except for names.
fn compare(left: &Plugin, right: &Plugin, rates: &AllRates, by: SortKey) -> Ordering {
    let (fast, slow) = (rates.of(&left.name), rates.of(&right.name));
    let large =
        |left: Option<f64>, right: Option<f64>| right.unwrap_or(-1.0).total_cmp(&left.unwrap_or(-1.0));
    match by {
        SortKey::Severity => badness(right).cmp(&badness(left)).then_with(|| large(fast.calls, slow.calls)),
        SortKey::Name => left.name.cmp(&right.name),
        SortKey::Calls => large(fast.calls, slow.calls),
        SortKey::Errors => large(fast.errors, slow.errors),
        SortKey::Latency => right.counters.p99_us.cmp(&left.counters.p99_us),
        SortKey::Cpu => large(fast.cpu, slow.cpu),
        SortKey::Memory => {
            let memory = |plugin: &Plugin| plugin.usage().map(|usage| usage.memory_bytes);
            memory(right).cmp(&memory(left))
        }
        SortKey::InFlight => {
            let busy = |plugin: &Plugin| u64::from(plugin.in_flight) + u64::from(plugin.waiting);
            busy(right).cmp(&busy(left))
        }
        SortKey::LogLines => large(fast.log_lines, slow.log_lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenes;

    fn names(filter: &str, by: SortKey, reversed: bool) -> Vec<String> {
        let (before, now) = scenes::two_readings();
        let rates = AllRates::between(&before, &now);
        shown(&now, &rates, filter, by, reversed).iter().map(|plugin| plugin.name.to_string()).collect()
    }

    #[test]
    fn what_is_wrong_comes_first() {
        assert_eq!(names("", SortKey::Severity, false)[..2], ["jira", "web-fetch"]);
        assert_eq!(names("", SortKey::Severity, true).last().map(String::as_str), Some("web-fetch"));
    }

    #[test]
    fn a_filter_takes_names_and_states() {
        assert_eq!(names("JIR", SortKey::Name, false), ["jira"]);
        assert_eq!(names("backoff", SortKey::Name, false), ["web-fetch"]);
        assert_eq!(names("nothing like it", SortKey::Name, false), [""; 0]);
    }

    #[test]
    fn each_order_has_a_key_of_its_own_and_comes_round() {
        let mut by = SortKey::Severity;
        for (expected, ..) in ALL {
            assert_eq!(by, expected);
            by = by.next();
        }
        assert_eq!(by, SortKey::Severity);
        for (by, _, _) in ALL {
            assert_eq!(names("", by, false).len(), 6, "{by:?}");
        }
        assert_eq!(names("", SortKey::Calls, false)[0], "code-search");
        assert_eq!(names("", SortKey::Latency, false)[0], "csv-query");
    }
}
