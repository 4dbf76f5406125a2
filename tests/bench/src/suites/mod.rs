//! What is measured, one file each. A suite starts its contenders, lets them take turns round by round, and
//! records every figure in [`Figures`](crate::figures::Figures).

mod agent;
mod bench;
mod calls;
mod floods;
mod gateway;
mod guard;
mod intake;
mod lua;
mod many;
mod pages;
mod restart;
mod sanitizer;
mod start;
mod watch;

use std::process::Command;

use anyhow::Result;
use talon_tests::program;

use crate::neighbours::{CONDITION, NEIGHBOURS, Neighbours};

pub use bench::{Bench, Plan};

/// The suites by name, in their order.
pub const SUITES: &[&str] = &[
    "calls",
    "guard",
    "sanitizer",
    "start",
    "restart",
    "many",
    "floods",
    "intake",
    "agent",
    "lua",
    "gateway",
    "pages",
    "watch",
];

/// Runs a suite beside busy neighbours, and returns how many cores these took.
///
/// # Errors
/// As [`run`], or if a neighbour ended early.
pub async fn run_beside_neighbours(suite: &str, bench: &mut Bench<'_>) -> Result<f64> {
    let neighbours = Neighbours::start(NEIGHBOURS, || {
        let mut command = Command::new(program("talon-bench-stock"));
        command.arg("burn");
        command
    })?;
    bench.probe.turn_to(None);
    bench.book.set_condition(CONDITION);
    let done = run(suite, bench).await;
    bench.book.set_condition("");
    done?;
    neighbours.end()
}

/// Runs a suite.
///
/// # Errors
/// If a contender fails, because a table with a missing row would look complete.
///
/// # Panics
/// If there is no suite of that name; the command line validates them.
pub async fn run(suite: &str, bench: &mut Bench<'_>) -> Result<()> {
    bench.book.set_suite(suite);
    match suite {
        "calls" => calls::run(bench).await,
        "many" => many::run(bench).await,
        "floods" => floods::run(bench).await,
        "intake" => intake::run(bench).await,
        "agent" => agent::run(bench).await,
        "lua" => lua::run(bench).await,
        "gateway" => Box::pin(gateway::run(bench)).await,
        "pages" => Box::pin(pages::run(bench)).await,
        "watch" => watch::run(bench).await,
        "guard" => guard::run(bench).await,
        "sanitizer" => sanitizer::run(bench).await,
        "start" => start::run(bench).await,
        "restart" => restart::run(bench).await,
        other => unreachable!("{other} is none of {SUITES:?}"),
    }
}
