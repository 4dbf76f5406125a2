//! Which model a request goes to, what that costs, and what happens when it fails.
//!
//! ```text
//!  request ─► complexity ─► router ─► candidates ─► fallback ─► provider
//!                             ▲                      │    ▲
//!                   catalog, pins, what is           │    └── retry (what each class of error does)
//!                   out of service (breaker)         └──► cost (estimate, ledger, budget), attempts
//! ```
//!
//! Everything but [`fallback`] is a pure function or machine into which time is passed; [`fallback::Chain`] performs what they
//! say. `docs/models.md` is the operators' page.

pub mod breaker;
pub mod catalog;
pub mod complexity;
pub mod cost;
pub mod fallback;
mod keys;
mod money;
mod nearest;
pub mod retry;
pub mod router;
pub mod show;
mod task;

pub use self::keys::{BreakerKeys, FallbackKeys};
pub use self::money::{BadMoney, DOLLARS_FORMAT, Money, Price};
pub use self::task::{Complexity, Task, Tier, tier_for};

#[cfg(test)]
mod page_tests;
