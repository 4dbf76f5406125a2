//! The state machine of a circuit breaker: of plugins (`talon-guard`) and of model providers (`talon-llm`).
//! It is pure: time is passed in, and what surrounds it decides what counts as a failure.
//!
//! ```text
//!            `failures` in a row within `window`
//!   Closed ───────────────────────────────────────► Open ◄──────────────────┐
//!     ▲  ▲                                           │ its time is over,     │ a failure: the next time is twice as
//!     │  └── reset                                   ▼ and a trial starts    │ long, up to `open_max`
//!     └──────── `successes` in a row ────────── HalfOpen ───────────────────┘
//! ```
//!
//! In the half-open state one trial runs at a time. Each change of state starts a new epoch. The verdict on a
//! call that was admitted in an earlier epoch is ignored, so that late results neither reopen nor close the
//! breaker.

mod circuit_breaker;
mod settings;
mod state;

pub use circuit_breaker::{CircuitBreaker, Permit, Verdict};
pub use settings::{BreakerSettings, MAX_FAILURES, MAX_TIME};
pub use state::BreakerState;
