//! The numbers of all calls, for whoever shows them.

use std::time::Duration;

use talon_guard::trace::UNKNOWN_PLUGIN_LABEL;
use talon_plugin::name::RESERVED_NAME;

use super::counters::{ByOutcome, Counters};
use super::{Door, Gauge};

/// The calls of a plugin, of the supervisor's own actions, or to nobody.
#[derive(Debug)]
pub struct Numbers {
    /// The configured name, or what stands in its place.
    pub name: String,
    /// Its calls at this moment; `None` where nothing runs.
    pub gauge: Option<Gauge>,
    /// Calls refused because too many waited.
    pub shed: u64,
    /// By action, how its calls ended.
    pub actions: Vec<(String, ByOutcome)>,
}

impl Door {
    /// The numbers of everybody who can be called, and those of calls to nobody.
    #[must_use]
    pub fn numbers(&self) -> Vec<Numbers> {
        let without_process = |name: &str, counters: &Counters| Numbers {
            name: name.to_owned(),
            gauge: None,
            shed: counters.shed(),
            actions: counters.by_action(),
        };
        let current = self.current.load();
        let core = current.core.iter().map(|core| without_process(RESERVED_NAME, &core.counters));
        let nowhere = without_process(UNKNOWN_PLUGIN_LABEL, &current.nowhere.counters);
        let plugins = self.registry.list().into_iter().map(|plugin| {
            let entry = self.entry(&plugin);
            Numbers {
                name: plugin.name().to_string(),
                gauge: Some(self.gauge(&plugin)),
                shed: entry.counters.shed(),
                actions: entry.counters.by_action(),
            }
        });
        plugins.chain(core).chain([nowhere]).collect()
    }

    /// Measures the guard's layers in calls that come in within this time.
    pub fn measure_for(&self, time: Duration) {
        self.current.load().shared.watch.run_for(time);
    }
}
