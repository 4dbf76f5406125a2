//! The gateway's pages in Debian's Chromium, driven by Playwright (`tests/pages/measure.py`): first paint with a cold cache, typing in a long
//! chat, and memory after as many pieces as an hour of streaming has.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use talon_tests::{repository, target};

use super::Bench;
use super::gateway::system::System;
use crate::turns::{self, Turns};

const CHROMIUM: &str = "/usr/lib/chromium/chromium";
/// Messages of the long chat.
const MESSAGES: &str = "1000";
/// An hour of streaming, at 20 pieces a second: this many answers of this many pieces. They come in a minute instead.
const ANSWERS: &str = "36";
const PIECES: &str = "2000";

fn python() -> PathBuf {
    target().join("pages/python/bin/python")
}

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    if bench.plan.loaded {
        // Its goals are times and memory, and no ratios.
        return Ok(());
    }
    if !Path::new(CHROMIUM).exists() || !python().exists() {
        bench.book.note("the pages: there is no Chromium, or nothing to drive it with (apt-get install chromium, tests/scripts/deps.sh bench)");
        return Ok(());
    }
    let system = System::start().await?;
    let quick = bench.plan.quick;
    let kinds: [(&[&str], usize, bool); 3] = [
        (&["paint"], if quick { 5 } else { 15 }, true),
        (&["typing", MESSAGES], if quick { 1 } else { 5 }, true),
        (&["streaming", ANSWERS, PIECES, "an hour of streaming"], 1, !quick),
    ];
    for (words, rounds, _) in kinds.into_iter().filter(|(_, _, wanted)| *wanted) {
        bench.progress.set_message(format!("pages/{}", words[0]));
        let mut page = start(&system, words).await?;
        if words[0] == "paint" {
            // The first one starts Chromium's processes.
            page.turn()?;
        }
        for _ in 0..rounds {
            bench.probe.run_once();
            turns::record(bench.book, page.turn()?, None);
        }
    }
    Ok(())
}

/// A browser of its own, signed in.
async fn start(system: &System, words: &[&str]) -> Result<Turns> {
    let opened = system.supervisor.cli(&["gateway", "open", "--scope", "operate"]).await;
    ensure!(opened.status.success(), "no link: {}", String::from_utf8_lossy(&opened.stderr));
    let mut command = Command::new(python());
    command.arg("-B").arg(repository().join("tests/pages/measure.py"));
    command.arg(String::from_utf8(opened.stdout)?.trim()).args(words);
    Turns::start("pages", &mut command)
}
