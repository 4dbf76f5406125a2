//! How a model's window is divided: `agent.context`.
//!
//! | | `frugal` | `balanced` | `full` |
//! |---|---|---|---|
//! | used of a window | about 6,000 tokens | up to 200,000 | all |
//! | system, summary, tools | 500, 800, 1,500 tokens | 10, 5, 10 % | 10, 5, 10 % |
//! | turns | 2,000 tokens, 5 to 10 turns | what is left | what is left |
//! | latest results of tools | 500 tokens | within the turns | within the turns |
//! | when the turns do not fit | – | summarized to half of their room | to seven eighths |
//!
//! Shares are taken of what a question may use without a warning ([`Window::comfortable`]), beside the safety
//! rules.

use talon_agent_settings::{ContextKeys, ContextProfile, ContextShares};

use super::sections::Pressure;
use super::{Sections, Window};

/// What `balanced` uses of a window: providers charge more for a question above it, and models find less in
/// one.
const BALANCED_WINDOW: usize = 200_000;
/// Up to this window the safety rules are in two languages only: all of them would be a tenth of what a
/// question may use of it. Not configurable.
const SMALL_WINDOW: usize = 8_192;
/// What a shortened result keeps where the window has room: the envelope and some twenty lines.
const ROOMY_MIN_RESULT: usize = 400;

/// How a model's window is divided. Numbers that are `None` follow from the profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextPlan {
    /// The profile.
    pub profile: ContextProfile,
    /// The most tokens of a window that are used.
    pub window: Option<usize>,
    /// Shares of the window, in hundredths.
    pub shares: ContextShares,
    /// See [`Sections::system`].
    pub system: Option<usize>,
    /// See [`Sections::summary`].
    pub summary: Option<usize>,
    /// See [`Sections::recent`].
    pub recent: Option<usize>,
    /// See [`Sections::tool_results`].
    pub tool_results: Option<usize>,
    /// See [`Sections::tools`].
    pub tools: Option<usize>,
    /// See [`Sections::min_result`].
    pub min_result: Option<usize>,
    /// The most turns shown.
    pub turns: Option<usize>,
    /// The turns that stay when older ones are summarized.
    pub kept_turns: Option<usize>,
}

impl From<&ContextKeys> for ContextPlan {
    fn from(keys: &ContextKeys) -> Self {
        let of = |number: Option<u32>| number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Self {
            profile: keys.profile,
            window: of(keys.window),
            shares: keys.shares,
            system: of(keys.system),
            summary: of(keys.summary),
            recent: of(keys.recent),
            tool_results: of(keys.tool_results),
            tools: of(keys.tools),
            min_result: of(keys.min_result),
            turns: of(keys.turns),
            kept_turns: of(keys.kept_turns),
        }
    }
}

impl ContextPlan {
    /// The founding numbers.
    #[must_use]
    pub fn frugal() -> Self {
        Self { profile: ContextProfile::Frugal, ..Self::default() }
    }

    /// The part of a window that is used.
    #[must_use]
    pub fn used(&self, window: Window) -> Window {
        let most = self.window.or((self.profile == ContextProfile::Balanced).then_some(BALANCED_WINDOW));
        Window(most.map_or(window.0, |most| most.min(window.0)))
    }

    /// Whether there is room for the safety rules in all languages.
    #[must_use]
    pub fn has_all_safety_rules(&self, window: Window) -> bool {
        self.used(window).0 > SMALL_WINDOW
    }

    /// The turns that stay verbatim when older ones are summarized.
    #[must_use]
    pub fn kept_turns(&self) -> usize {
        self.kept_turns.unwrap_or(Sections::default().turns.1).max(1)
    }

    /// The budgets for a window, beside `fixed` tokens that are never cut.
    #[must_use]
    pub fn sections(&self, window: Window, fixed: usize) -> Sections {
        let room = self.used(window).comfortable().saturating_sub(fixed);
        let founding = Sections::default();
        let share = |hundredths: u32| room / 100 * usize::try_from(hundredths).unwrap_or(100);
        let target = match self.profile {
            ContextProfile::Frugal => {
                let sections = Sections {
                    system: self.system.unwrap_or(founding.system),
                    summary: self.summary.unwrap_or(founding.summary),
                    recent: self.recent.unwrap_or(founding.recent),
                    tool_results: self.tool_results.unwrap_or(founding.tool_results),
                    tools: self.tools.unwrap_or(founding.tools),
                    min_result: self.min_result.unwrap_or(founding.min_result),
                    turns: (self.turns.unwrap_or(founding.turns.0), self.kept_turns()),
                    pressure: Pressure::Constant,
                };
                return sections.within(room);
            }
            ContextProfile::Balanced => 50,
            ContextProfile::Full => 87,
        };
        Sections {
            system: self.system.unwrap_or_else(|| share(self.shares.system)).min(room),
            summary: self.summary.unwrap_or_else(|| share(self.shares.summary)).min(room),
            recent: self.recent.unwrap_or(room).min(room),
            tool_results: self.tool_results.unwrap_or(room).min(room),
            tools: self.tools.unwrap_or_else(|| share(self.shares.tools)).min(room),
            min_result: self.min_result.unwrap_or_else(|| {
                // A small window has no room for more than the founding number.
                ROOMY_MIN_RESULT.min(room / 20).max(founding.min_result)
            }),
            turns: (self.turns.unwrap_or(usize::MAX), self.kept_turns()),
            pressure: Pressure::WhenFull { target },
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
