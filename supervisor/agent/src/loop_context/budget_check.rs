//! Whether a turn has reached one of its limits.
//!
//! The check runs between two questions to the model, and uses the context alone. Before a limit ends a turn,
//! the model gets a warning ([`Warning`]), so that it can change course or answer with what it has. Only a
//! limit of 1 leaves no room for one.

use talon_agent_settings::milliseconds;

use super::{LoopContext, ToolStats};
use crate::budget::{BudgetCheck, BudgetUse, Limit, Warning};
use crate::progress;

/// The share of time and money from which the model is warned, in hundredths. 80 leaves room for a last
/// question or two.
const WARN_AT_PERCENT: u32 = 80;

impl LoopContext {
    /// Whether the model may be asked again after a batch of calls.
    #[must_use]
    pub fn check_budgets(&self) -> BudgetCheck {
        let budgets = self.budgets();
        let mut warnings = Vec::new();
        for (tool, tally) in self.tool_stats() {
            let successes = tally.identical_successes();
            if successes >= budgets.identical_successes.get() {
                return BudgetCheck::Exceeded(Limit::IdenticalSuccesses {
                    tool: tool.clone(),
                    times: successes,
                });
            }
            if tally.errors() >= budgets.tool_errors.get() {
                return BudgetCheck::Exceeded(Limit::ToolErrors {
                    tool: tool.clone(),
                    errors: tally.errors(),
                });
            }
            // Only tools of the last batch: repeating a warning after each batch would be noise.
            if !self.just_used(tool) {
                continue;
            }
            if successes > 1 && successes + 1 == budgets.identical_successes.get() {
                warnings.push(Warning::IdenticalSuccesses { tool: tool.clone(), times: successes });
            }
            if tally.errors() > 0 && tally.errors() + 1 == budgets.tool_errors.get() {
                warnings.push(Warning::ToolErrors { tool: tool.clone(), errors: tally.errors() });
            }
        }
        let repeats = progress::repeats(self.history());
        if repeats >= budgets.no_progress.get() {
            return BudgetCheck::Exceeded(Limit::NoProgress { times: repeats });
        }
        if let Some(limit) = self.exhausted_limit() {
            return BudgetCheck::Exceeded(limit);
        }
        if self.iterations_left() == 0 {
            return BudgetCheck::Exceeded(Limit::Iterations { most: budgets.iterations.get() });
        }
        // One warning is enough where a single tool makes no progress.
        let has_repeat_warning =
            warnings.iter().any(|warning| matches!(warning, Warning::IdenticalSuccesses { .. }));
        if !has_repeat_warning && repeats > 1 && repeats + 1 == budgets.no_progress.get() {
            warnings.push(Warning::NoProgress { times: repeats });
        }
        if let Some(tool) = self.answer().and_then(|answer| answer.cut_call.clone()) {
            warnings.push(Warning::CallCutOff { tool });
        }
        if self.iterations_left() == 1 {
            warnings.push(Warning::LastIteration);
        }
        warnings.extend(self.spending_warnings());
        BudgetCheck::Within(warnings)
    }

    /// The limit of time or money that is reached. It also ends a turn that waits for a model or a tool: then
    /// the driver sends [`Failure::Limit`](super::Failure::Limit).
    #[must_use]
    pub fn exhausted_limit(&self) -> Option<Limit> {
        let (budgets, spent) = (self.budgets(), self.spent());
        if spent.elapsed >= budgets.wall_time {
            return Some(Limit::WallTime { most: budgets.wall_time });
        }
        budgets
            .micro_usd
            .filter(|most| spent.micro_usd >= *most)
            .map(|most| Limit::Cost { most_micro_usd: most })
    }

    /// Warns once, when the share is passed, instead of after every later question.
    fn spending_warnings(&self) -> Vec<Warning> {
        let (budgets, before, now) = (self.budgets(), self.spent_before(), self.spent());
        let mut warnings = Vec::new();
        let at = budgets.wall_time.mul_f64(f64::from(WARN_AT_PERCENT) / 100.0);
        if before.elapsed < at && now.elapsed >= at {
            warnings.push(Warning::WallTime {
                left_seconds: budgets.wall_time.saturating_sub(now.elapsed).as_secs(),
            });
        }
        if let Some(most) = budgets.micro_usd {
            let at = most / 100 * u64::from(WARN_AT_PERCENT);
            if before.micro_usd < at && now.micro_usd >= at {
                warnings.push(Warning::Cost { left_micro_usd: most.saturating_sub(now.micro_usd) });
            }
        }
        warnings
    }

    /// Use and rest of each budget.
    #[must_use]
    pub fn budget_use(&self) -> BudgetUse {
        let errors = self.tallies.values().map(ToolStats::errors).max().unwrap_or_default();
        BudgetUse {
            iterations_left: self.iterations_left(),
            tool_errors_left: self.budgets.tool_errors.get().saturating_sub(errors),
            retries_left: self.retries_left(),
            elapsed_ms: milliseconds(self.spent.elapsed),
            left_ms: milliseconds(self.budgets.wall_time.saturating_sub(self.spent.elapsed)),
            tokens: self.usage.input_tokens.saturating_add(self.usage.output_tokens),
            micro_usd: self.spent.micro_usd,
            micro_usd_left: self.budgets.micro_usd.map(|most| most.saturating_sub(self.spent.micro_usd)),
        }
    }
}

#[cfg(test)]
#[path = "budget_check_tests.rs"]
mod tests;
