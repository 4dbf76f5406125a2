//! The watcher of `talon watch` with a tree of 100,000 files: its memory, and its CPU while nothing happens.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use talon_tests::{Scratch, program};
use tokio::time::sleep;

use super::Bench;
use crate::figures::Unit;
use crate::process_stats::{CpuTime, resident_mib};

const TALON: &str = "talon-watch";
const CASE: &str = "watch/100,000 files";
const DIRECTORIES: usize = 1000;
const FILES: usize = 100;

/// Ended when dropped.
struct Watcher(Child);

impl Drop for Watcher {
    fn drop(&mut self) {
        // It is our child and reaped here; an error cannot be handled.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    if bench.plan.loaded {
        // Its goals are no ratios.
        return Ok(());
    }
    bench.progress.set_message(CASE);
    let (rounds, seconds) = if bench.plan.quick { (1, 3) } else { (3, 20) };
    let scratch = Scratch::new();
    let work = scratch.join("work");
    make_tree(&work)?;
    for directory in ["run", "home"] {
        std::fs::create_dir(scratch.join(directory))?;
    }
    let config = format!(
        "shadow: {{ enabled: true, watchers: {{ filesystem: {{ paths: [{}] }} }} }}\n",
        work.display()
    );
    let config = scratch.write("watch.yaml", &config);
    for _ in 0..rounds {
        bench.probe.run_once();
        let watcher = start(&scratch, &config)?;
        let pid = watcher.0.id();
        // What its first look at the tree left to do is done.
        sleep(Duration::from_secs(2)).await;
        let before = CpuTime::of(pid)?;
        sleep(Duration::from_secs(seconds)).await;
        let spent = CpuTime::of(pid)?.since(&before);
        let mut page = bench.book.case(CASE, None);
        page.add(TALON, "memory", Unit::Mebibytes, resident_mib(pid)?);
        let part = spent.as_secs_f64() / Duration::from_secs(seconds).as_secs_f64();
        page.add(TALON, "idle CPU", Unit::PercentOfACore, part * 100.0);
    }
    Ok(())
}

fn make_tree(work: &Path) -> Result<()> {
    for directory in 0..DIRECTORIES {
        let directory = work.join(format!("module{directory}"));
        std::fs::create_dir_all(&directory)?;
        for file in 0..FILES {
            std::fs::write(directory.join(format!("file{file}.rs")), "pub fn one() -> u32 {\n    1\n}\n")?;
        }
    }
    Ok(())
}

/// Returns once it watches.
fn start(scratch: &Scratch, config: &Path) -> Result<Watcher> {
    let mut command = Command::new(program("talon-watch"));
    command.args(["--dry-run", "--config"]).arg(config);
    command.env("XDG_RUNTIME_DIR", scratch.join("run")).env("HOME", scratch.join("home"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut watcher = Watcher(command.spawn().context("talon-watch")?);
    let mut said = BufReader::new(watcher.0.stderr.take().context("stderr is piped")?).lines();
    let ready = said.by_ref().map_while(Result::ok).find(|line| line.contains("talon-watch: watches "));
    let ready = ready.context("talon-watch ended before it watched")?;
    ensure!(ready.contains("100,000") || ready.contains("100000"), "it watches something else: {ready}");
    // It must not wait for a reader of what it says.
    std::thread::spawn(move || said.map_while(Result::ok).for_each(drop));
    Ok(watcher)
}
