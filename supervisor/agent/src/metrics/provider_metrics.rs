//! Metrics of the model chain and of memory.

use std::sync::Arc;

use async_trait::async_trait;
use talon_agent_settings::PICOS_PER_DOLLAR;
use talon_llm::route::cost::BudgetScope;
use talon_llm::route::fallback::{Event, EventObserver};
use talon_llm::route::retry;
use talon_llm::route::router::Pins;

use super::Metrics;
use crate::costs::is_own_session;
use crate::driver::{Caller, CompletedTurn, Recall, Recollection};

impl EventObserver for Metrics {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::Routed { task, judgement, route, .. } => {
                let model = route.candidates.first().map(|candidate| candidate.model.to_string());
                let (complexity, tier) = (judgement.complexity.word(), route.wanted.word());
                self.routed.increment(&[task.word(), complexity, tier, &model.unwrap_or_default()]);
            }
            Event::Attempt { attempt, first_piece, .. } => {
                let outcome = attempt.error.as_ref().map_or("ok", |error| retry::word(error.class));
                let labels = [attempt.provider.as_str(), &attempt.model, outcome];
                self.attempts.increment(&labels);
                self.attempt_seconds.observe_seconds(&labels, attempt.latency_ms as f64 / 1000.0);
                if let Some(first) = first_piece {
                    let labels = [attempt.provider.as_str(), &attempt.model];
                    self.first_piece_seconds.observe_seconds(&labels, first.as_secs_f64());
                }
            }
            Event::Retry { model, class, .. } => {
                self.retries.increment(&[&model.provider, &model.name, retry::word(*class)]);
            }
            Event::FellBack { from, to, class } => {
                self.fallbacks.increment(&[&from.provider, &to.model.provider, retry::word(*class)]);
            }
            Event::Charged { session, plugin, model, charge, .. } => {
                let usage = charge.usage;
                for (kind, tokens) in [
                    ("input", usage.input_tokens),
                    ("output", usage.output_tokens),
                    ("cached", usage.cached_input_tokens),
                    ("thinking", usage.thinking_tokens),
                ] {
                    self.tokens.add(&[&model.provider, &model.name, kind], tokens as f64);
                }
                let dollars = charge.cost.picodollars() as f64 / PICOS_PER_DOLLAR as f64;
                self.cost.add(&[&model.provider, &model.name], dollars);
                if let Some(plugin) = plugin {
                    let account = if is_own_session(session) { "own" } else { "turn" };
                    self.plugin_completion_cost.add(&[plugin, account], dollars);
                }
            }
            Event::OverBudget { over, .. } => self.over_budget.increment(&[match over.limit {
                BudgetScope::Session => "session",
                BudgetScope::Day => "day",
            }]),
            Event::Breaker { provider, change } => self.breaker.increment(&[provider, change.to.as_str()]),
            Event::Probed { provider, failed } => {
                self.probes.increment(&[provider, failed.map_or("ok", retry::word)]);
            }
            _ => {}
        }
    }
}

impl Metrics {
    /// Counts a completion of a plugin.
    pub(crate) fn count_plugin_completion(&self, plugin: &str, outcome: &str, seconds: f64) {
        self.plugin_completions.increment(&[plugin, outcome]);
        self.plugin_completion_seconds.observe_seconds(&[plugin, outcome], seconds);
    }
}

/// Counts recalls.
pub(crate) struct CountingRecall {
    pub(crate) inner: Arc<dyn Recall>,
    pub(crate) metrics: Arc<Metrics>,
}

#[async_trait]
impl Recall for CountingRecall {
    async fn recall(&self, caller: &Caller, request: &str, pins: &Pins) -> Recollection {
        let found = self.inner.recall(caller, request, pins).await;
        let (memories, hints) = (found.memories.len(), found.hints.len());
        self.metrics.recalls.increment(&[if memories + hints > 0 { "found" } else { "nothing" }]);
        self.metrics.recalled.add(&["memory"], memories as f64);
        self.metrics.recalled.add(&["workflow"], hints as f64);
        found
    }

    async fn learn(&self, learned: CompletedTurn) {
        self.inner.learn(learned).await;
    }
}
