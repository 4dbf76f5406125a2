//! What is known of one person.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{Candidate, GhostEnd, HoldReason, PolicyLimits, TriggerStats, WallTime};

/// The most candidates that wait for a boundary: more than one piece of work finds. The oldest one makes room.
pub const MAX_CANDIDATES: usize = 16;
/// How long a candidate waits for a boundary. 15 minutes: what was seen before that is likely done.
pub const CANDIDATE_LIFETIME_MS: u64 = 15 * 60 * 1000;
/// How many findings are known as told. 2048: at ten an hour more than a week; then the oldest may be told once more.
pub const MAX_TOLD: usize = 2048;
/// How many ids of observations are known: watchers send again what was not answered, at most 64 at once.
pub const MAX_KNOWN_IDS: usize = 256;
/// The most triggers that are counted apart. There are some ten; further ones of a watcher share the last place.
pub const MAX_TRIGGERS: usize = 64;
/// The most repositories that a person can mute.
pub const MAX_MUTED: usize = 256;
/// Under which name further triggers are counted.
const OTHERS: &str = "(other)";
const HOUR_MS: u64 = 60 * 60 * 1000;

/// What is known of one person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SenderState {
    /// Candidates that wait, the oldest first.
    pub waiting: Vec<Candidate>,
    /// The observation about which a model is asked.
    pub asking: Option<String>,
    /// When ghosts were made in the last hour, the oldest first.
    pub ghosts_at_ms: VecDeque<u64>,
    /// When the last one was made.
    pub last_ghost_ms: Option<u64>,
    /// By trigger.
    pub triggers: BTreeMap<String, TriggerStats>,
    /// What was told of or asked about, the oldest first.
    pub told: VecDeque<String>,
    /// Ids of the latest observations, the oldest first.
    pub known_ids: VecDeque<String>,
    /// Whether the loop rests, and until when.
    pub paused: bool,
    /// Absent: until it is resumed.
    pub paused_until_ms: Option<u64>,
    /// Work trees that the person muted.
    pub muted: BTreeSet<String>,
    /// What was spent today.
    pub spending: Spending,
}

/// What was spent on one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// Days since 1970.
    pub day: u64,
    /// Tokens, of questions and answers.
    pub tokens: u64,
    /// Picodollars.
    pub pico_usd: u64,
}

/// What becomes of an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveOutcome {
    /// Whether its id is new. Nothing changed otherwise.
    pub new: bool,
    /// About which observation a model is to be asked now.
    pub ask: Option<Candidate>,
    /// Why no model is asked, although a piece of work ended for which something waited.
    pub postponed: Option<HoldReason>,
}

impl SenderState {
    /// Whether the loop rests.
    #[must_use]
    pub fn is_paused(&self, now: WallTime) -> bool {
        self.paused && self.paused_until_ms.is_none_or(|until| now.unix_ms < until)
    }

    /// Takes an observation. One that may be asked about is marked as being asked.
    pub fn observe(&mut self, limits: &PolicyLimits, candidate: Candidate, now: WallTime) -> ObserveOutcome {
        if self.known_ids.contains(&candidate.id) {
            return ObserveOutcome { new: false, ask: None, postponed: None };
        }
        remember(&mut self.known_ids, candidate.id.clone(), MAX_KNOWN_IDS);
        self.tidy(now);
        let (boundary, repository) = (candidate.boundary, candidate.repository.clone());
        if !candidate.trigger.is_empty() {
            self.admit(limits, candidate, now);
        }
        let released = (boundary || !limits.boundaries_only).then_some(repository.as_str());
        let postponed = released
            .filter(|repository| self.waiting.iter().any(|one| one.is_released_by(repository)))
            .and_then(|_| self.obstacle(limits, now));
        ObserveOutcome {
            new: true,
            ask: released.and_then(|repository| self.choose(limits, repository, now)),
            postponed,
        }
    }

    /// Decides what can be decided at once, and has the rest wait.
    fn admit(&mut self, limits: &PolicyLimits, candidate: Candidate, now: WallTime) {
        let name = self.trigger_name(&candidate.trigger);
        let same = |other: &Candidate| other.fingerprint == candidate.fingerprint;
        let reason = if self.told.contains(&candidate.fingerprint) || self.waiting.iter().any(same) {
            Some(HoldReason::Repeated)
        } else if self.is_paused(now) {
            Some(HoldReason::Paused)
        } else if self.is_muted(limits, &candidate.repository) {
            Some(HoldReason::Muted)
        } else {
            None
        };
        let stats = self.triggers.entry(name).or_default();
        stats.observations += 1;
        let reason = reason.or_else(|| (!stats.rate.take()).then_some(HoldReason::Rate));
        if let Some(reason) = reason {
            stats.hold(reason);
            return;
        }
        if self.waiting.len() >= MAX_CANDIDATES {
            let oldest = self.waiting.remove(0);
            self.hold(&oldest, HoldReason::Crowded);
        }
        self.waiting.push(candidate);
    }

    /// The latest candidate that this boundary releases, if one may be asked about now. The others go on waiting.
    fn choose(&mut self, limits: &PolicyLimits, repository: &str, now: WallTime) -> Option<Candidate> {
        if self.obstacle(limits, now).is_some() {
            return None;
        }
        let at = self.waiting.iter().rposition(|one| one.is_released_by(repository))?;
        let chosen = self.waiting.remove(at);
        remember(&mut self.told, chosen.fingerprint.clone(), MAX_TOLD);
        self.asking = Some(chosen.id.clone());
        let name = self.trigger_name(&chosen.trigger);
        self.triggers.entry(name).or_default().asked += 1;
        Some(chosen)
    }

    /// Why nothing may be asked about now, whatever it is.
    #[must_use]
    pub fn obstacle(&self, limits: &PolicyLimits, now: WallTime) -> Option<HoldReason> {
        let of_hour = self.ghosts_within_hour(now);
        if self.is_paused(now) {
            Some(HoldReason::Paused)
        } else if self.asking.is_some() {
            Some(HoldReason::Asking)
        } else if limits.quiet_hours.is_some_and(|hours| hours.contains(now.local_minute)) {
            Some(HoldReason::QuietHours)
        } else if of_hour >= limits.max_ghosts_per_hour {
            Some(HoldReason::HourlyLimit)
        } else if self.last_ghost_ms.is_some_and(|last| now.since(last) < limits.cooldown_ms) {
            Some(HoldReason::Cooldown)
        } else {
            self.spent_budget(limits, now)
        }
    }

    /// Which budget of the day has nothing left for a question.
    #[must_use]
    pub fn spent_budget(&self, limits: &PolicyLimits, now: WallTime) -> Option<HoldReason> {
        let spent = self.spent(now);
        if spent.tokens.saturating_add(limits.tokens_per_question) > limits.tokens_per_day {
            Some(HoldReason::TokenBudget)
        } else if limits.pico_usd_per_day.is_some_and(|most| spent.pico_usd > 0 && spent.pico_usd >= most) {
            Some(HoldReason::MoneyBudget)
        } else {
            None
        }
    }

    /// A model was asked, at this cost.
    pub fn spend(&mut self, tokens: u64, pico_usd: u64, now: WallTime) {
        let spent = self.spent(now);
        self.spending = Spending {
            day: now.day(),
            tokens: spent.tokens.saturating_add(tokens),
            pico_usd: spent.pico_usd.saturating_add(pico_usd),
        };
    }

    /// The question about an observation is over: a ghost was made of it, or nothing.
    pub fn answered(&mut self, id: &str, trigger: &str, ghost: bool, now: WallTime) {
        if self.asking.as_deref() == Some(id) {
            self.asking = None;
        }
        if ghost {
            self.last_ghost_ms = Some(now.unix_ms);
            self.ghosts_at_ms.push_back(now.unix_ms);
            let name = self.trigger_name(trigger);
            self.triggers.entry(name).or_default().ghosts += 1;
        }
        while self.ghosts_at_ms.front().is_some_and(|at| now.since(*at) >= HOUR_MS) {
            self.ghosts_at_ms.pop_front();
        }
    }

    /// Nothing was told of a finding after all: it may come again.
    pub fn forget_finding(&mut self, fingerprint: &str) {
        self.told.retain(|told| told != fingerprint);
    }

    /// A ghost ended.
    pub fn ended(&mut self, trigger: &str, end: GhostEnd) {
        let name = self.trigger_name(trigger);
        self.triggers.entry(name).or_default().ended(end);
    }

    /// How many ghosts were made in the last hour.
    #[must_use]
    pub fn ghosts_within_hour(&self, now: WallTime) -> u32 {
        let young = self.ghosts_at_ms.iter().filter(|at| now.since(**at) < HOUR_MS).count();
        u32::try_from(young).unwrap_or(u32::MAX)
    }

    /// What was spent today.
    #[must_use]
    pub fn spent(&self, now: WallTime) -> Spending {
        if self.spending.day == now.day() {
            self.spending
        } else {
            Spending { day: now.day(), ..Spending::default() }
        }
    }

    /// Has the loop rest or go on. What waits leads to nothing while it rests.
    pub fn pause(&mut self, paused: bool, until_ms: Option<u64>) {
        (self.paused, self.paused_until_ms) = (paused, until_ms.filter(|_| paused));
        if paused {
            self.drop_waiting(HoldReason::Paused, |_| true);
        }
    }

    /// Mutes a repository, or not any more. Returns whether there was room for it.
    #[must_use]
    pub fn mute(&mut self, repository: &str, muted: bool) -> bool {
        if !muted {
            self.muted.remove(repository);
            return true;
        }
        if self.muted.len() >= MAX_MUTED && !self.muted.contains(repository) {
            return false;
        }
        self.muted.insert(repository.to_owned());
        self.drop_waiting(HoldReason::Muted, |one| one.repository == repository);
        true
    }

    /// Candidates that became too old lead to nothing. A clock that was set back makes nothing last longer than it is meant
    /// to: what is later than now counts as now.
    pub fn tidy(&mut self, now: WallTime) {
        self.last_ghost_ms = self.last_ghost_ms.map(|at| at.min(now.unix_ms));
        self.ghosts_at_ms.iter_mut().for_each(|at| *at = (*at).min(now.unix_ms));
        self.waiting.iter_mut().for_each(|one| one.at_ms = one.at_ms.min(now.unix_ms));
        self.drop_waiting(HoldReason::NoBoundary, |one| now.since(one.at_ms) >= CANDIDATE_LIFETIME_MS);
    }

    fn drop_waiting(&mut self, reason: HoldReason, is_over: impl Fn(&Candidate) -> bool) {
        let (over, others): (Vec<Candidate>, Vec<Candidate>) =
            std::mem::take(&mut self.waiting).into_iter().partition(is_over);
        self.waiting = others;
        for candidate in over {
            self.hold(&candidate, reason);
        }
    }

    fn hold(&mut self, candidate: &Candidate, reason: HoldReason) {
        let name = self.trigger_name(&candidate.trigger);
        self.triggers.entry(name).or_default().hold(reason);
    }

    fn is_muted(&self, limits: &PolicyLimits, repository: &str) -> bool {
        !repository.is_empty()
            && (self.muted.contains(repository) || limits.muted.iter().any(|muted| muted == repository))
    }

    /// Under which name a trigger is counted.
    fn trigger_name(&self, trigger: &str) -> String {
        let known = self.triggers.contains_key(trigger) || self.triggers.len() < MAX_TRIGGERS;
        if known { trigger.to_owned() } else { OTHERS.to_owned() }
    }
}

/// Adds to a list of the latest.
fn remember(list: &mut VecDeque<String>, one: String, most: usize) {
    while list.len() >= most {
        list.pop_front();
    }
    list.push_back(one);
}
