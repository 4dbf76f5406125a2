//! Which model a request goes to, what that costs, and what happens when it fails.
//!
//! ```text
//!  request ─► complexity ─► router ─► candidates ─► fallback ─► provider
//!                             ▲                      │    ▲
//!                   catalog, pins, what is           │    └── retry (what each class of error does)
//!                   out of service (breaker)         └──► cost (estimate, ledger, budget), attempts
//! ```
//!
//! Everything but [`fallback`] is a pure function or machine into which time is passed; [`fallback::Chain`]
//! performs what they say. `docs/models.md` is the operators' page.

pub mod breaker;
pub mod complexity;
pub mod cost;
pub mod fallback;
mod keys;
mod requirements;
pub mod retry;
pub mod router;
pub mod show;
mod task;

pub use self::requirements::Requirements;
pub use self::task::{Complexity, Task, Tier, tier_for};
pub use talon_agent_settings::{
    BreakerKeys, DOLLARS_FORMAT, FallbackKeys, Money, ParseMoneyError, Price, catalog,
};

#[cfg(test)]
mod page_tests;
