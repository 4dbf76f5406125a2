//! Statistics of all calls, for monitoring.

use std::time::Duration;

use talon_guard::trace::UNKNOWN_PLUGIN_LABEL;
use talon_plugin_config::name::RESERVED_NAME;

use super::counters::{Counters, OutcomeCounts};
use super::dispatcher::{CallGauge, Dispatcher};

/// Statistics of the calls to a plugin, to the supervisor's own actions, or to unknown plugins.
#[derive(Debug)]
pub struct CallStatistics {
    /// The configured name, or a placeholder for calls without a plugin.
    pub name: String,
    /// The current load; `None` if there is no process.
    pub gauge: Option<CallGauge>,
    /// Calls refused because the queue was full.
    pub shed: u64,
    /// The outcomes of calls by action.
    pub actions: Vec<(String, OutcomeCounts)>,
}

impl Dispatcher {
    /// The statistics of every plugin, of the supervisor's own actions, and of calls to unknown plugins.
    #[must_use]
    pub fn statistics(&self) -> Vec<CallStatistics> {
        let without_process = |name: &str, counters: &Counters| CallStatistics {
            name: name.to_owned(),
            gauge: None,
            shed: counters.shed(),
            actions: counters.by_action(),
        };
        let current = self.current.load();
        let core = current.core.iter().map(|core| without_process(RESERVED_NAME, &core.counters));
        let nowhere = without_process(UNKNOWN_PLUGIN_LABEL, &current.unknown_plugin.counters);
        let plugins = self.registry.list().into_iter().map(|plugin| {
            let entry = self.entry(&plugin);
            CallStatistics {
                name: plugin.name().to_string(),
                gauge: Some(self.gauge(&plugin)),
                shed: entry.counters.shed(),
                actions: entry.counters.by_action(),
            }
        });
        plugins.chain(core).chain([nowhere]).collect()
    }

    /// Measures the guard's layers for calls that start within this time.
    pub fn measure_for(&self, time: Duration) {
        self.current.load().shared.watch.run_for(time);
    }
}
