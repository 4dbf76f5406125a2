//! What is measured, one file each. A suite starts its contenders, lets them take turns round by round, and records
//! every figure in [`Figures`](crate::figures::Figures).

mod bench;
mod calls;
mod guard;
mod intake;
mod many;
mod restart;
mod sanitizer;
mod start;

use anyhow::Result;

pub use bench::{Bench, Plan};

/// The suites by name, in their order.
pub const SUITES: &[&str] = &["calls", "guard", "sanitizer", "start", "restart", "many", "intake"];

/// Runs a suite.
///
/// # Errors
/// If a contender fails, because a table with a missing row would look complete.
///
/// # Panics
/// If there is no suite of that name; the command line validates them.
pub async fn run(suite: &str, bench: &mut Bench<'_>) -> Result<()> {
    match suite {
        "calls" => calls::run(bench).await,
        "many" => many::run(bench).await,
        "intake" => intake::run(bench).await,
        "guard" => guard::run(bench).await,
        "sanitizer" => sanitizer::run(bench).await,
        "start" => start::run(bench).await,
        "restart" => restart::run(bench).await,
        other => unreachable!("{other} is none of {SUITES:?}"),
    }
}
