//! What runs of each script, told to the host whenever it changes: for `talon status`, events and the audit log.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use talon_lua_engine::Point;
use talon_sdk::{Notifier, ScriptStatus};

use crate::scripts::{Entry, Scripts};

/// Tells the host.
pub(crate) struct Reporter {
    notifier: Notifier,
    /// What the host was told of each script.
    told: Mutex<BTreeMap<String, ScriptStatus>>,
}

impl Reporter {
    pub(crate) fn new(notifier: Notifier) -> Self {
        Self { notifier, told: Mutex::default() }
    }

    /// Tells what changed since the last time.
    pub(crate) fn report(&self, scripts: &Scripts) {
        let mut told = self.told.lock();
        let now: BTreeMap<String, ScriptStatus> =
            scripts.all().into_iter().map(|(name, entry)| (name.clone(), status(name, &entry))).collect();
        for name in told.keys().filter(|name| !now.contains_key(*name)) {
            self.notifier.script_removed(name);
        }
        for (name, status) in &now {
            if told.get(name) != Some(status) {
                self.notifier.script(status.clone());
            }
        }
        *told = now;
    }
}

fn status(name: String, entry: &Entry) -> ScriptStatus {
    let loaded = entry.loaded.as_ref();
    let points = loaded.map(|loaded| loaded.definition.points.as_slice()).unwrap_or_default();
    ScriptStatus {
        name,
        functions: points.iter().map(|point| Point::as_str(*point).to_owned()).collect(),
        sha256: loaded.map(|loaded| loaded.sha256.clone()).unwrap_or_default(),
        loads: entry.loads,
        problem: entry.failure.clone().unwrap_or_default(),
        ended_by_interrupt: entry.ends.interrupted.get(),
        ended_with_process: entry.ends.killed.get(),
    }
}
