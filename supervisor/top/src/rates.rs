//! Rates: the difference of two readings over the time between them.

use std::collections::HashMap;

use crate::reading::{Instance, Plugin, Reading, Usage};

/// Rates per second. `None` if two readings cannot be compared: at the first one, or after a restart of the
/// supervisor or the process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) calls: Option<f64>,
    pub(crate) errors: Option<f64>,
    pub(crate) log_lines: Option<f64>,
    /// In percent of one CPU.
    pub(crate) cpu: Option<f64>,
}

/// The rates of all plugins, their sum, and the supervisor's own CPU usage.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllRates {
    pub(crate) plugins: HashMap<String, Rates>,
    pub(crate) total: Rates,
    pub(crate) supervisor_cpu: Option<f64>,
}

impl AllRates {
    /// The rates between two readings.
    pub(crate) fn between(before: &Reading, now: &Reading) -> Self {
        let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
        let (was, is) = (&before.supervisor, &now.supervisor);
        // A new supervisor counts from zero.
        if seconds <= 0.0 || was.pid != is.pid || was.started_unix_ms != is.started_unix_ms {
            return Self::default();
        }
        let mut all = Self {
            supervisor_cpu: was.usage.zip(is.usage).and_then(|(was, is)| cpu(was, is, seconds)),
            ..Self::default()
        };
        for plugin in &now.plugins {
            let Some(earlier) = before.plugin(&plugin.name) else { continue };
            let rates = rates(earlier, plugin, seconds);
            all.total.add(&rates);
            all.plugins.insert(plugin.name.as_str().to_owned(), rates);
        }
        all
    }

    /// The rates of one plugin.
    pub(crate) fn of(&self, plugin: &str) -> Rates {
        self.plugins.get(plugin).copied().unwrap_or_default()
    }
}

impl Rates {
    fn add(&mut self, other: &Self) {
        for (sum, one) in [
            (&mut self.calls, other.calls),
            (&mut self.errors, other.errors),
            (&mut self.log_lines, other.log_lines),
            (&mut self.cpu, other.cpu),
        ] {
            if let Some(one) = one {
                *sum = Some(sum.unwrap_or_default() + one);
            }
        }
    }
}

fn rates(before: &Plugin, now: &Plugin, seconds: f64) -> Rates {
    let (was, is) = (&before.counters, &now.counters);
    let grown = |was: u64, is: u64| is.checked_sub(was).map(|more| as_f64(more) / seconds);
    let used: Vec<f64> = now
        .instances
        .iter()
        .filter_map(|one| {
            let earlier = before.instances.iter().find(|other| is_same(other, one))?;
            cpu(earlier.usage?, one.usage?, seconds)
        })
        .collect();
    Rates {
        calls: grown(was.calls, is.calls),
        errors: grown(was.errors, is.errors),
        log_lines: grown(was.log_lines, is.log_lines),
        cpu: (!used.is_empty()).then(|| used.iter().sum()),
    }
}

/// Whether it is the same process, and not its successor.
fn is_same(one: &Instance, other: &Instance) -> bool {
    one.index == other.index && one.generation == other.generation && one.pid == other.pid
}

fn cpu(was: Usage, is: Usage, seconds: f64) -> Option<f64> {
    is.cpu_us.checked_sub(was.cpu_us).map(|more| as_f64(more) / 1e6 / seconds * 100.0)
}

#[expect(clippy::cast_precision_loss, reason = "a rate on a screen has three digits")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenes;

    // Promises: CLI-29
    #[test]
    fn rates_are_differences_over_the_time_between() {
        let (before, now) = scenes::two_readings();
        let all = AllRates::between(&before, &now);
        // The two readings are two seconds apart.
        let search = all.of("code-search");
        assert_eq!((search.calls, search.errors), (Some(120.5), Some(1.0)));
        assert_eq!(search.cpu, Some(25.0));
        assert!(all.total.calls > search.calls);
        assert_eq!(all.of("no-such"), Rates::default());
    }

    // Promises: CLI-29
    #[test]
    fn another_supervisor_or_process_does_not_compare() {
        let (before, mut now) = scenes::two_readings();
        now.plugins[0].instances[0].generation += 1;
        let name = now.plugins[0].name.as_str().to_owned();
        assert_eq!(AllRates::between(&before, &now).of(&name).cpu, None);
        assert!(
            AllRates::between(&before, &now).of(&name).calls.is_some(),
            "its calls are the door's to count"
        );
        now.supervisor.pid += 1;
        assert_eq!(AllRates::between(&before, &now).total, Rates::default());
        assert_eq!(AllRates::between(&now, &now).total, Rates::default(), "no time has passed");
    }

    proptest! {
        // Promises: CLI-29
        #[test]
        fn counters_of_any_kind_make_no_wrong_number(was in any::<u64>(), is in any::<u64>()) {
            let (mut before, mut now) = scenes::two_readings();
            before.plugins[0].counters.calls = was;
            now.plugins[0].counters.calls = is;
            let rate = AllRates::between(&before, &now).of(now.plugins[0].name.as_str()).calls;
            prop_assert_eq!(rate.is_some(), is >= was);
            prop_assert!(rate.is_none_or(|rate| rate.is_finite() && rate >= 0.0));
        }
    }
}
