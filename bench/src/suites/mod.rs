//! What is measured, one file each. A suite sets its contenders up, has them take turns round by round, and writes every
//! figure into the [`Book`].

mod calls;
mod guard;
mod intake;
mod many;
mod restart;
mod sanitizer;
mod start;

use anyhow::Result;
use indicatif::ProgressBar;

use crate::book::Book;
use crate::machine::Probe;

/// How much of everything is measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The short run: fewer cases, fewer and shorter rounds.
    pub quick: bool,
}

/// What a suite works with.
pub struct Bench<'b> {
    /// How much is measured.
    pub plan: Plan,
    /// Where figures go.
    pub book: &'b mut Book,
    /// Looked at once a round.
    pub probe: &'b mut Probe,
    /// Says what is being measured.
    pub progress: ProgressBar,
}

/// The suites by name, in their order.
pub const SUITES: &[&str] = &["calls", "guard", "sanitizer", "start", "restart", "many", "intake"];

/// Runs a suite.
///
/// # Errors
/// If a contender fails: a table with a hole in it would be read as if there were none.
///
/// # Panics
/// If there is no suite of that name; the command line knows them.
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
