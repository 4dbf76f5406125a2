//! What a turn has used and warned of.

use std::collections::{BTreeSet, VecDeque};

use talon_agent_settings::PICOS_PER_MICRO;
use talon_llm::model::Usage;
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::fallback::Attempt;

use crate::context::Stats;
use crate::plugin_calls::ModelUse;

/// What the turn's end reports.
#[derive(Default)]
pub(super) struct TurnAccount {
    pub(super) pico_usd: u128,
    /// What the providers' caches saved.
    pub(super) saved_pico_usd: u128,
    /// The part that the machine was notified of.
    pub(super) micro_usd: u64,
    /// What the last answer added to it.
    pub(super) last_micro_usd: u64,
    /// Usage of questions that the machine does not count: summaries.
    pub(super) usage: Usage,
    /// The attempts of all questions: the latest [`MAX_ATTEMPTS`].
    pub(super) attempts: VecDeque<Attempt>,
    /// The number of earlier attempts that were dropped.
    pub(super) attempts_left_out: usize,
    pub(super) model: Option<ModelRef>,
    /// Every model that saw the turn's text.
    pub(super) models: BTreeSet<String>,
    pub(super) stats: Option<Stats>,
    /// Plugin, action, and whether the call succeeded.
    pub(super) calls: Vec<(String, String, bool)>,
    /// An error word that is more exact than the failure's own.
    pub(super) word: Option<&'static str>,
    pub(super) warned_tight: bool,
    /// Whether people were notified that results are shown shortened.
    pub(super) warned_cut: bool,
    /// Whether people were notified of what the prompt does not have.
    pub(super) warned_prompt: bool,
    /// Whether people were notified that not all tools are offered at once.
    pub(super) warned_tools: bool,
    /// Whether people were notified of models that cannot look at pictures.
    pub(super) warned_vision: bool,
    /// Whether people were notified of images that a model was not shown.
    pub(super) warned_unseen: bool,
    /// Whether people were notified of images of earlier turns that are not shown again.
    pub(super) warned_images: bool,
}

/// The most attempts of a turn that are stored and reported. A turn exceeds it only if nearly every question
/// falls back; then the earliest are dropped, and a notice says how many. Not configurable.
pub(super) const MAX_ATTEMPTS: usize = 64;

impl TurnAccount {
    /// Records the attempts of one question.
    pub(super) fn record_attempts(&mut self, attempts: Vec<Attempt>) {
        let saw = attempts.iter().map(|attempt| format!("{}/{}", attempt.provider, attempt.model));
        self.models.extend(saw);
        self.attempts.extend(attempts);
        let too_many = self.attempts.len().saturating_sub(MAX_ATTEMPTS);
        self.attempts.drain(..too_many);
        self.attempts_left_out += too_many;
    }

    /// Adds what plugins asked of models.
    pub(super) fn record_model_use(&mut self, used: ModelUse) {
        let ModelUse { pico_usd, usage, models } = used;
        self.record_cost(pico_usd);
        self.usage.add(usage);
        self.models.extend(models);
    }

    /// Adds to the turn's cost.
    pub(super) fn record_cost(&mut self, pico_usd: u128) {
        self.pico_usd = self.pico_usd.saturating_add(pico_usd);
    }

    /// The cost that the machine receives with an answer: everything since the previous one, in millionths of
    /// a dollar. Rounded up over the whole turn instead of each time.
    pub(super) fn take_unreported_micro_usd(&mut self) -> u64 {
        let all = u64::try_from(self.pico_usd.div_ceil(PICOS_PER_MICRO)).unwrap_or(u64::MAX);
        self.last_micro_usd = all.saturating_sub(self.micro_usd);
        self.micro_usd = all;
        self.last_micro_usd
    }
}
