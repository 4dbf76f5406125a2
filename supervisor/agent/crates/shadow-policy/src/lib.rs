//! The policy of the shadow loop: which of a person's observations go to a model, and when.
//!
//! Pure: time is an argument, and nothing is stored here. The agent stores a [`SenderState`] after each change, so that
//! what was decided survives it.
//!
//! ```text
//! observation ─► has it a trigger? ─► was it told of? ─► paused, muted? ─► its trigger's rate ─► Candidate, which waits
//!                                                                                                     │ a boundary
//!                      one at a time ◄─ cooldown, hourly limit, quiet hours, budgets of the day ◄─────┘
//!                            │
//!                            └─► a question to a model ─► a ghost, or nothing
//! ```
//!
//! - [`PolicyLimits`]: what the operator and the person permit
//! - [`SenderState`]: what is known of one person: candidates, findings that were told of, triggers, pauses, spending
//! - [`TriggerRate`]: which share of a trigger's observations passes; decisions of the person move it
//! - [`HoldReason`]: why an observation leads to nothing

mod candidate;
mod hold;
mod limits;
mod rate;
mod state;
mod trigger;
mod wall_time;

pub use candidate::Candidate;
pub use hold::HoldReason;
pub use limits::{PolicyLimits, QuietHours, QuietHoursError};
pub use rate::TriggerRate;
pub use state::{
    CANDIDATE_LIFETIME_MS, MAX_CANDIDATES, MAX_KNOWN_IDS, MAX_MUTED, MAX_TOLD, MAX_TRIGGERS, ObserveOutcome,
    SenderState, Spending,
};
pub use trigger::{GhostEnd, TriggerStats};
pub use wall_time::WallTime;

#[cfg(test)]
mod day_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
