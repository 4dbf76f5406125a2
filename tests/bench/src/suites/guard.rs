//! The guard without IO: its time, and its allocations.

use std::process::Command;

use anyhow::Result;
use talon_tests::program;

use super::Bench;
use crate::turns::{self, Turns};

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.progress.set_message("guard");
    let rounds = if bench.plan.quick { 9 } else { 51 };
    let mut clock = Turns::start("guard", Command::new(program("talon-bench-guarded")).arg("layers"))?;
    let recorded = &mut Command::new(program("talon-bench-guarded"));
    let mut recorded = Turns::start("guard, recorded", recorded.args(["layers", "--recorded"]))?;
    // The first turn fills caches.
    clock.turn()?;
    recorded.turn()?;
    for _ in 0..rounds {
        bench.probe.run_once();
        turns::record(bench.book, clock.turn()?, None);
        turns::record(bench.book, recorded.turn()?, None);
    }
    // Exact, and the same at every turn.
    let mut counter = Turns::start("guard, counted", &mut Command::new(program("talon-bench-counted")))?;
    turns::record(bench.book, counter.turn()?, None);
    Ok(())
}
