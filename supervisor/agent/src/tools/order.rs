//! Which calls of one answer wait for which.
//!
//! A call only ever waits for calls before it in the answer, so that none waits for itself over others.

use std::collections::{BTreeMap, BTreeSet};

use talon_agent_settings::ParallelCalls;

use super::{TURN_PLUGIN, Tool, WAIT_ACTION};

/// The calls for which each call of an answer waits, by index. A call without an entry waits for none.
#[must_use]
pub fn earlier_calls(
    planned: &[(usize, &Tool)],
    parallel: ParallelCalls,
) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut waits = BTreeMap::new();
    for (at, (place, tool)) in planned.iter().enumerate() {
        let before = planned[..at].iter().filter(|(_, earlier)| must_follow(tool, earlier, parallel));
        let before: BTreeSet<usize> = before.map(|(place, _)| *place).collect();
        if !before.is_empty() {
            waits.insert(*place, before);
        }
    }
    waits
}

fn must_follow(tool: &Tool, earlier: &Tool, parallel: ParallelCalls) -> bool {
    // What stands behind a wait is meant to happen after it.
    if earlier.plugin == TURN_PLUGIN && earlier.action == WAIT_ACTION {
        return true;
    }
    let only_read = tool.read_only && earlier.read_only;
    match parallel {
        ParallelCalls::All => tool.plugin == earlier.plugin && !only_read,
        ParallelCalls::ReadOnly => !only_read,
        ParallelCalls::None => true,
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
