//! From nothing to a plugin that is ready: bare, in bubblewrap and in each of Talon's jails, one and a hundred at once; and
//! the same of a program that does nothing.

use std::process::Command;

use anyhow::Result;
use talon_tests::{is_root, program};

use super::Bench;
use crate::guarded::bubblewrap;
use crate::turns::{self, Turns};

/// Whom the others are compared with.
const YARDSTICK: &str = "no jail";

/// Nobody's on any machine of ours. Namespaces of an ordinary user cost more than those of root.
const ORDINARY: &str = "54321";

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    if !bubblewrap::is_here() {
        let missing =
            format!("starts in bwrap: there is no {} (scripts/deps.sh test installs it)", bubblewrap::BWRAP);
        bench.book.note(missing);
    }
    let quick = bench.plan.quick;
    let (one, many, nothing) = if quick { (11, 3, 11) } else { (41, 9, 41) };
    // A hundred starts are the dearest turn of all; the short run has them of one user alone.
    let cases = [
        (&["start", "1"][..], one, true),
        (&["start", "100"], many, !quick),
        (&["start-true"], nothing, true),
    ];
    for (words, rounds, somebody_else) in cases {
        bench.progress.set_message(words.join(" "));
        let mut contenders = contenders(bench, words, somebody_else)?;
        for _ in 0..rounds {
            bench.probe.look();
            for (whose, turns) in &mut contenders {
                let mut told = turns.turn()?;
                told.iter_mut().for_each(|told| told.case.push_str(whose));
                turns::write(bench.book, told, Some(YARDSTICK));
            }
        }
    }
    Ok(())
}

/// What takes turns, and what is written behind the names of its cases: this user, and beside root somebody else too.
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
        // Not every machine gives its users namespaces.
        Err(error) => bench.book.note(format!("{} by this user: {error:#}", words.join(" "))),
    }
    if is_root() && somebody_else {
        let mut theirs = Command::new("setpriv");
        theirs.args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups"]);
        match warmed_up(theirs.arg(program("talon-bench-guarded")).args(words)) {
            Ok(turns) => contenders.push((", by an ordinary user", turns)),
            Err(error) => {
                bench
                    .book
                    .note(format!("{} by an ordinary user, uid {ORDINARY}: {error:#}", words.join(" ")));
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
