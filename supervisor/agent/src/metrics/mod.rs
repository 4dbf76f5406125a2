//! The metrics `talon_agent_*`.
//!
//! Label values are fixed words, names from the configuration, and names of tools and plugins; each family
//! bounds their number. The share of questions that fell back is `fallbacks_total` over `routed_total`. A
//! counter without events has a sample of 0, without labels if their values are not known in advance.

mod family;
mod provider_metrics;
mod shadow_metrics;
mod turn_metrics;

use talon_proto::agent::MetricFamily;
use talon_store::{NotificationCounts, NotificationState};

use family::{Family, FamilyKind};

pub(crate) use provider_metrics::CountingRecall;

/// All metric families.
#[derive(Debug)]
pub struct Metrics {
    transitions: Family,
    state_seconds: Family,
    turns: Family,
    turn_seconds: Family,
    running: Family,
    routed: Family,
    attempts: Family,
    attempt_seconds: Family,
    first_piece_seconds: Family,
    retries: Family,
    fallbacks: Family,
    tokens: Family,
    cost: Family,
    over_budget: Family,
    provider_up: Family,
    breaker: Family,
    probes: Family,
    tool_calls: Family,
    tool_seconds: Family,
    approvals: Family,
    approvals_pending: Family,
    plugin_completions: Family,
    plugin_completion_seconds: Family,
    plugin_completion_cost: Family,
    subagents: Family,
    subagent_seconds: Family,
    recalls: Family,
    recalled: Family,
    notifications: Family,
    events_dropped: Family,
    shadow_observations: Family,
    shadow_redactions: Family,
    shadow_dropped: Family,
    shadow_held_back: Family,
    shadow_postponed: Family,
    shadow_questions: Family,
    shadow_tokens: Family,
    shadow_cost: Family,
    shadow_ghosts: Family,
    shadow_waiting: Family,
    shadow_watchers: Family,
    shadow_watcher_seen: Family,
    shadow_budget_spent: Family,
    followers: Family,
    pieces_lost: Family,
    bus_subscribers: Family,
    bus_missed: Family,
    memory: Family,
}

/// Creates each family, and lists them all in this order.
///
/// An entry has a field of [`Metrics`], the kind, the name, the labels and the help text. `from_zero` starts
/// these label values at 0, where all of them are known in advance.
macro_rules! families {
    ($($field:ident: $kind:ident $name:literal $labels:tt $help:literal $(from_zero $zero:tt)?;)*) => {
        impl Default for Metrics {
            fn default() -> Self {
                Self {
                    $($field: Family::new(FamilyKind::$kind, $name, &$labels, $help)$(.counting_from_zero(&$zero))?,)*
                }
            }
        }

        impl Metrics {
            /// All families as protocol messages.
            pub(crate) fn families(&self) -> Vec<MetricFamily> {
                vec![$(self.$field.to_wire(),)*]
            }

            /// Name, kind and labels of all families.
            #[cfg(test)]
            fn described(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
                [$(self.$field.description(),)*].into_iter()
            }
        }
    };
}

families! {
    transitions: Counter "talon_agent_transitions_total" ["state", "event"]
        "Transitions of the loop, by the state that was left and the event.";
    state_seconds: Histogram "talon_agent_state_seconds" ["state"]
        "Time in each state of the loop.";
    turns: Counter "talon_agent_turns_total" ["outcome"]
        "Turns, by how they ended.";
    turn_seconds: Histogram "talon_agent_turn_seconds" ["outcome"]
        "Time from a question to its answer.";
    running: Gauge "talon_agent_turns_running" []
        "Turns that are under way.";
    routed: Counter "talon_agent_routed_total" ["task", "complexity", "tier", "model"]
        "Questions to models, by the model that was asked first.";
    attempts: Counter "talon_agent_attempts_total" ["provider", "model", "outcome"]
        "Tries at models: ok, or the class of the error.";
    attempt_seconds: Histogram "talon_agent_attempt_seconds" ["provider", "model", "outcome"]
        "Time from a question to the end of its answer, or to the error.";
    first_piece_seconds: Histogram "talon_agent_first_piece_seconds" ["provider", "model"]
        "Time from a question to the first piece of an answer.";
    retries: Counter "talon_agent_retries_total" ["provider", "model", "class"]
        "Questions that were asked again at the same model.";
    fallbacks: Counter "talon_agent_fallbacks_total" ["from", "to", "class"]
        "Questions that another model was asked, by provider.";
    tokens: Counter "talon_agent_tokens_total" ["provider", "model", "kind"]
        "Tokens: input and output, and of these those from a cache and those thought.";
    cost: Counter "talon_agent_cost_usd_total" ["provider", "model"]
        "What models cost, in US dollars.";
    over_budget: Counter "talon_agent_over_budget_total" ["limit"]
        "Questions that were not asked, since they would have gone beyond a budget."
        from_zero [&["session"], &["day"]];
    provider_up: Gauge "talon_agent_provider_up" ["provider"]
        "1 if a provider can be asked, 0.5 while it recovers, 0 if it cannot.";
    breaker: Counter "talon_agent_breaker_changes_total" ["provider", "to"]
        "Changes of a provider's breaker, by its new state.";
    probes: Counter "talon_agent_probes_total" ["provider", "outcome"]
        "Probes of providers that were left alone.";
    tool_calls: Counter "talon_agent_tool_calls_total" ["plugin", "action", "outcome"]
        "Calls of tools by models: ok or failed.";
    tool_seconds: Histogram "talon_agent_tool_seconds" ["plugin", "action", "outcome"]
        "Time from a call to its result, without what it waited for a person.";
    approvals: Counter "talon_agent_approvals_total" ["state"]
        "Calls that asked a person, and what became of them."
        from_zero [&["pending"], &["approved"], &["denied"], &["expired"], &["cancelled"]];
    approvals_pending: Gauge "talon_agent_approvals_pending" []
        "Calls that wait for a person.";
    plugin_completions: Counter "talon_agent_plugin_completions_total" ["plugin", "outcome"]
        "Completions that plugins asked for: ok, or why there is none.";
    plugin_completion_seconds: Histogram "talon_agent_plugin_completion_seconds" ["plugin", "outcome"]
        "Time from a plugin's request for a completion to its answer.";
    plugin_completion_cost: Counter "talon_agent_plugin_completion_cost_usd_total" ["plugin", "account"]
        "What completions of plugins cost, in US dollars, by who pays: turn or own.";
    subagents: Counter "talon_agent_subagents_total" ["agent", "outcome"]
        "Tasks that were given to sub-agents.";
    subagent_seconds: Histogram "talon_agent_subagent_seconds" ["agent"]
        "Time from a sub-agent's task to its result.";
    recalls: Counter "talon_agent_recalls_total" ["outcome"]
        "Requests for which was looked what is remembered: found or nothing."
        from_zero [&["found"], &["nothing"]];
    recalled: Counter "talon_agent_recalled_total" ["kind"]
        "Memories and workflows that were put into a prompt."
        from_zero [&["memory"], &["workflow"]];
    notifications: Gauge "talon_agent_notifications" ["state"]
        "Notifications in the agent's database, by what became of them.";
    events_dropped: Counter "talon_agent_events_dropped_total" []
        "Events that nobody is told one by one, since more came than are taken.";
    shadow_observations: Counter "talon_agent_shadow_observations_total" ["kind", "verdict"]
        "Observations of watchers and event sources: taken, known or invalid.";
    shadow_redactions: Counter "talon_agent_shadow_redactions_total" []
        "Secrets that watchers had left in observations, and that were replaced.";
    shadow_dropped: Counter "talon_agent_shadow_dropped_total" []
        "Observations that watchers dropped, since their queues were full.";
    shadow_held_back: Counter "talon_agent_shadow_held_back_total" ["rule"]
        "Findings that led to nothing, by the rule that held them back."
        from_zero [&["repeated"], &["paused"], &["muted"], &["rate"], &["no_boundary"], &["crowded"]];
    shadow_postponed: Counter "talon_agent_shadow_postponed_total" ["rule"]
        "Ends of work at which a finding went on waiting, by the rule."
        from_zero [&["asking"], &["cooldown"], &["hourly_limit"], &["quiet_hours"], &["token_budget"], &["money_budget"]];
    shadow_questions: Counter "talon_agent_shadow_questions_total" ["outcome"]
        "Questions to models about observations, by what came of them."
        from_zero [&["ghost"], &["nothing"], &["failed"]];
    shadow_tokens: Counter "talon_agent_shadow_tokens_total" ["kind"]
        "Tokens of these questions and their answers."
        from_zero [&["input"], &["output"]];
    shadow_cost: Counter "talon_agent_shadow_cost_usd_total" []
        "What these questions cost, in US dollars.";
    shadow_ghosts: Counter "talon_agent_shadow_ghosts_total" ["what"]
        "Ghosts that were made, and what became of them."
        from_zero [&["made"], &["approved"], &["dismissed"], &["snoozed"], &["expired"]];
    shadow_waiting: Gauge "talon_agent_shadow_ghosts_waiting" []
        "Ghosts that wait for a person.";
    shadow_watchers: Gauge "talon_agent_shadow_watchers" []
        "Watchers that were heard within the last five minutes.";
    shadow_watcher_seen: Gauge "talon_agent_shadow_watcher_seen_seconds" []
        "When a watcher was heard last, in seconds since 1970.";
    shadow_budget_spent: Gauge "talon_agent_shadow_budget_spent" []
        "People whose tokens or money of today are spent.";
    followers: Gauge "talon_agent_followers" []
        "Clients that follow a turn.";
    pieces_lost: Counter "talon_agent_pieces_lost_total" []
        "Pieces of text that a follower did not get, since it read too slowly.";
    bus_subscribers: Gauge "talon_agent_bus_subscribers" []
        "Subscribers of the event bus, also the agent's own.";
    bus_missed: Counter "talon_agent_bus_missed_total" []
        "Events that a subscriber of the event bus did not get, since it read too slowly.";
    memory: Gauge "talon_agent_memory_bytes" []
        "Resident memory of talon-agent; it may use 2 GiB.";
}

impl Metrics {
    /// Sets the gauges before they are read: running turns, waiting calls, the state of each provider, and
    /// the memory of this process.
    pub(crate) fn set_gauges<'p>(
        &self,
        turns: usize,
        approvals: Option<usize>,
        followers: usize,
        providers: impl IntoIterator<Item = (&'p str, f64)>,
    ) {
        self.running.set(&[], turns as f64);
        // An unknown value stays as it was.
        if let Some(approvals) = approvals {
            self.approvals_pending.set(&[], approvals as f64);
        }
        self.followers.set(&[], followers as f64);
        self.provider_up.clear();
        for (provider, up) in providers {
            self.provider_up.set(&[provider], up);
        }
        // Where `/proc` cannot be read there is no sample.
        if let Some(bytes) = resident_bytes() {
            self.memory.set(&[], bytes as f64);
        }
    }

    /// Sets what is known of notifications, before it is read.
    pub(crate) fn set_notifications(&self, counts: Option<NotificationCounts>, dropped: u64) {
        self.events_dropped.set(&[], dropped as f64);
        // An unknown value stays as it was.
        let Some(counts) = counts else { return };
        for (state, count) in [
            (NotificationState::Waiting, counts.waiting),
            (NotificationState::Sending, counts.sending),
            (NotificationState::Delivered, counts.delivered),
            (NotificationState::Refused, counts.refused),
            (NotificationState::GivenUp, counts.given_up),
        ] {
            self.notifications.set(&[state.word()], count as f64);
        }
    }

    /// Sets what is known of the event bus, before it is read.
    pub(crate) fn set_bus(&self, subscribers: usize, missed: u64) {
        self.bus_subscribers.set(&[], subscribers as f64);
        self.bus_missed.set(&[], missed as f64);
    }

    /// Counts the pieces that a follower lost.
    pub(crate) fn count_lost_pieces(&self, pieces: u64) {
        self.pieces_lost.add(&[], pieces as f64);
    }
}

/// Resident memory of this process: `VmRSS` of `/proc/self/status`, which is in KiB.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = size.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/metrics.md");

    // Promises: METRIC-13
    #[test]
    fn the_page_lists_what_is_counted() {
        let rows = PAGE.lines().skip_while(|line| *line != "### What the agent counts").skip(1);
        let rows = rows.take_while(|line| !line.starts_with('#'));
        let rows = rows.filter(|line| line.split('|').nth(2).is_some_and(|name| name.starts_with(" `")));
        let listed: Vec<(String, String, String)> = rows
            .map(|row| {
                let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
                let labels = cells[3].replace('`', "");
                (format!("talon_agent_{}", cells[1].trim_matches('`')), cells[2].to_owned(), labels)
            })
            .collect();
        let metrics = Metrics::default();
        let counted: Vec<(String, String, String)> = metrics
            .described()
            .map(|(name, kind, labels)| (name.to_owned(), kind.to_owned(), labels.join(", ")))
            .collect();
        assert_eq!(listed, counted);
    }

    #[test]
    fn a_process_uses_memory() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 100_000));
    }
}
