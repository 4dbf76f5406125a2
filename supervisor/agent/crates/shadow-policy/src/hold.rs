//! Why an observation leads to nothing.

use serde::{Deserialize, Serialize};

/// Why an observation is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// The same finding was told of, or is being asked about.
    Repeated,
    /// The loop rests.
    Paused,
    /// Its repository is muted.
    Muted,
    /// Its trigger's rate.
    Rate,
    /// No piece of work ended before it was too old.
    NoBoundary,
    /// Another question is being asked.
    Asking,
    /// The last ghost is too young.
    Cooldown,
    /// There were as many ghosts in the last hour as there may be.
    HourlyLimit,
    /// It is quiet now.
    QuietHours,
    /// The tokens of the day are spent.
    TokenBudget,
    /// The money of the day is spent.
    MoneyBudget,
    /// Others came meanwhile, and no more may wait.
    Crowded,
}

impl HoldReason {
    /// The word for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Repeated => "repeated",
            Self::Paused => "paused",
            Self::Muted => "muted",
            Self::Rate => "rate",
            Self::NoBoundary => "no_boundary",
            Self::Asking => "asking",
            Self::Cooldown => "cooldown",
            Self::HourlyLimit => "hourly_limit",
            Self::QuietHours => "quiet_hours",
            Self::TokenBudget => "token_budget",
            Self::MoneyBudget => "money_budget",
            Self::Crowded => "crowded",
        }
    }
}
