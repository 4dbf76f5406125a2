//! A summary of all plugins in one line: for `talon status` and for the STATUS of a service manager.

use std::collections::BTreeMap;

use talon_sanitize::{Raw, Sanitized};

/// Maximum number of plugins that are named because they need attention; the rest is counted.
const MAX_NAMED: usize = 3;
/// Maximum length of a reason after a name, in bytes: its most important words come first.
const MAX_REASON_BYTES: usize = 60;

/// One plugin's part of the summary.
#[derive(Debug, Clone, Copy)]
pub struct PluginStatus<'p> {
    /// The plugin's name.
    pub name: &'p str,
    /// The observed state.
    pub state: &'p str,
    /// The reason for that state; may be empty.
    pub reason: &'p str,
}

/// "12 plugins: 11 ready, 1 failed (jira: handshake timeout)".
pub fn summarize<'p>(all: impl IntoIterator<Item = PluginStatus<'p>>) -> Sanitized {
    let mut by_state: BTreeMap<(u8, &str), Vec<PluginStatus<'p>>> = BTreeMap::new();
    for one in all {
        by_state.entry((rank(one.state), one.state)).or_default().push(one);
    }
    let count: usize = by_state.values().map(Vec::len).sum();
    if count == 0 {
        return "no plugins".into();
    }
    let states = by_state.iter().map(|((_, state), plugins)| match list_names(state, plugins) {
        None => format!("{} {state}", plugins.len()),
        Some(names) => format!("{} {state} ({names})", plugins.len()),
    });
    let states: Vec<String> = states.collect();
    let noun = if count == 1 { "plugin" } else { "plugins" };
    Raw::from(format!("{count} {noun}: {}", states.join(", "))).line()
}

/// Sorts good states first, then transitional ones.
fn rank(state: &str) -> u8 {
    match state {
        "ready" => 0,
        "failed" | "refused" | "unhealthy" | "backoff" => 2,
        "stopped" => 3,
        _ => 1,
    }
}

/// The names of plugins in this state, if it needs attention.
fn list_names(state: &str, plugins: &[PluginStatus<'_>]) -> Option<String> {
    if rank(state) != 2 {
        return None;
    }
    let mut names: Vec<String> = plugins.iter().take(MAX_NAMED).map(describe).collect();
    if plugins.len() > MAX_NAMED {
        names.push(format!("{} more", plugins.len() - MAX_NAMED));
    }
    Some(names.join(", "))
}

fn describe(one: &PluginStatus<'_>) -> String {
    // The number of deaths says less than the cause of the last one; what to do next is shown elsewhere.
    let reason = one.reason.split_once("; last: ").map_or(one.reason, |(_, last)| last);
    let reason = reason.split([';', '\n']).next().unwrap_or_default().trim();
    if reason.is_empty() {
        return one.name.to_owned();
    }
    format!("{}: {}", one.name, Raw::from(reason).line_within(MAX_REASON_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &'static str, state: &'static str, reason: &'static str) -> PluginStatus<'static> {
        PluginStatus { name, state, reason }
    }

    // Promises: CLI-23
    #[test]
    fn it_counts_the_good_and_names_the_bad() {
        assert_eq!(summarize([]), "no plugins");
        assert_eq!(summarize([of("a", "ready", "")]), "1 plugin: 1 ready");
        let some = [
            of("jira", "failed", "handshake timeout; see `talon plugin logs jira`"),
            of("b", "stopped", ""),
            of("a", "ready", ""),
            of("c", "starting", ""),
        ];
        assert_eq!(
            summarize(some),
            "4 plugins: 1 ready, 1 starting, 1 failed (jira: handshake timeout), 1 stopped"
        );
    }

    #[test]
    fn of_many_deaths_it_tells_the_last() {
        let reason =
            "died 4 times within 5 min; last: ended by signal 9 (SIGKILL); see `talon plugin logs a`";
        assert_eq!(
            summarize([of("a", "failed", reason)]),
            "1 plugin: 1 failed (a: ended by signal 9 (SIGKILL))"
        );
    }

    // Promises: CLI-23
    #[test]
    fn it_stays_one_short_inert_line() {
        let long: &'static str =
            "x\u{1b}[2J very long and longer and longer and longer and longer and longer";
        let many = ["a", "b", "c", "d", "e"].map(|name| of(name, "failed", long));
        let text = summarize(many);
        assert!(text.ends_with(", 2 more)"), "{text}");
        assert!(text.len() < 300 && text.contains("␛[2J") && !text.contains('\u{1b}'), "{text}");
    }
}
