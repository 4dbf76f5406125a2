//! The sanitizer compared with sixty replacements one after another, by the kind of text.

use std::process::Command;

use anyhow::Result;
use talon_tests::program;

use super::Bench;
use crate::turns::{self, Turns};

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.progress.set_message("sanitizer");
    let rounds = if bench.plan.quick { 9 } else { 41 };
    let mut both = Turns::start("sanitizer", Command::new(program("talon-bench-guarded")).arg("sanitizer"))?;
    // The first turn fills caches.
    both.turn()?;
    for _ in 0..rounds {
        bench.probe.run_once();
        turns::record(bench.book, both.turn()?, Some("60 passes"));
    }
    Ok(())
}
