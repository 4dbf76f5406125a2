//! The start of a plugin until it is ready: directly, in bubblewrap and in each of Talon's jails, one and a
//! hundred at once; and the same for a program that does nothing.

use std::process::Command;

use anyhow::Result;
use talon_tests::{is_root, program};

use super::{Bench, Plan};
use crate::guarded::bubblewrap;
use crate::turns::{self, Turns};

/// The contender that the others are compared with.
const YARDSTICK: &str = "no jail";

/// A uid that no machine of ours uses. Namespaces of an ordinary user cost more than those of root.
const ORDINARY_UID: &str = "54321";

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    if !bubblewrap::is_installed() {
        let missing = format!(
            "starts in bwrap: there is no {} (tests/scripts/deps.sh test installs it)",
            bubblewrap::BWRAP
        );
        bench.book.note(missing);
    }
    let Plan { quick, loaded } = bench.plan;
    let (one, many, nothing) = if quick { (11, 3, 11) } else { (41, 9, 41) };
    // A hundred starts are the most expensive turn; the short run has them for one user only.
    let cases = [
        (&["start", "1"][..], one, !loaded),
        (&["start", "100"], many, !quick),
        (&["start-true"], nothing, true),
    ];
    let wanted = if loaded { 1 } else { cases.len() };
    for (words, rounds, somebody_else) in cases.into_iter().take(wanted) {
        bench.progress.set_message(words.join(" "));
        let mut contenders = contenders(bench, words, somebody_else)?;
        for _ in 0..rounds {
            bench.probe.run_once();
            for (whose, turns) in &mut contenders {
                let mut told = turns.turn()?;
                told.iter_mut().for_each(|told| told.case.push_str(whose));
                turns::record(bench.book, told, Some(YARDSTICK));
            }
        }
    }
    Ok(())
}

/// The contenders, and the suffix of their cases' names: this user, and if that is root an ordinary user,
/// too.
fn contenders(
    bench: &mut Bench<'_>,
    words: &[&str],
    somebody_else: bool,
) -> Result<Vec<(&'static str, Turns)>> {
    let mut ours = Command::new(program("talon-bench-guarded"));
    let mut contenders = Vec::new();
    match warmed_up(ours.args(words)) {
        Ok(turns) => contenders.push(("", turns)),
        Err(error) if is_root() => return Err(error),
        // Not every machine allows its users namespaces.
        Err(error) => bench.book.note(format!("{} by this user: {error:#}", words.join(" "))),
    }
    if is_root() && somebody_else {
        let mut theirs = Command::new("setpriv");
        theirs.args(["--reuid", ORDINARY_UID, "--regid", ORDINARY_UID, "--clear-groups"]);
        match warmed_up(theirs.arg(program("talon-bench-guarded")).args(words)) {
            Ok(turns) => contenders.push((", by an ordinary user", turns)),
            Err(error) => {
                bench
                    .book
                    .note(format!("{} by an ordinary user, uid {ORDINARY_UID}: {error:#}", words.join(" ")));
            }
        }
    }
    Ok(contenders)
}

/// The first turn fills caches.
fn warmed_up(command: &mut Command) -> Result<Turns> {
    let mut turns = Turns::start("start", command)?;
    turns.turn()?;
    Ok(turns)
}
