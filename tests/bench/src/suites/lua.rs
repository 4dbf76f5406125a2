//! Lua: a rule hook in the machine beside the interpreters that Debian packages; the whole hook through guard and jail; and what
//! scripts take of memory and time to load.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use talon_tests::{Builder, Scratch, program};

use super::{Bench, Plan};
use crate::turns::{self, Turns};

/// The yardstick, and another rival: the packages' programs, as `deps.sh bench` installs them.
const RIVALS: [&str; 2] = ["lua5.4", "luajit"];

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    machine(bench)?;
    // Its goals are times and memory, and no ratios.
    if bench.plan.loaded { Ok(()) } else { plugin(bench) }
}

fn machine(bench: &mut Bench<'_>) -> Result<()> {
    bench.progress.set_message("lua, machine");
    let rounds = if bench.plan.quick { 9 } else { 41 };
    let mut command = Command::new(program("talon-bench-guarded"));
    command.arg("lua-machine");
    for rival in RIVALS {
        command.arg(found(rival)?);
    }
    let mut all = Turns::start("lua, machine", &mut command)?;
    // The first turn fills caches.
    all.turn()?;
    for _ in 0..rounds {
        bench.probe.run_once();
        turns::record(bench.book, all.turn()?, Some(RIVALS[0]));
    }
    Ok(())
}

fn plugin(bench: &mut Bench<'_>) -> Result<()> {
    let Plan { quick, .. } = bench.plan;
    let rounds = if quick { 5 } else { 21 };
    let scratch = Scratch::new();
    let dir = scratch.join("scripts");
    std::fs::create_dir(&dir)?;
    let builder = Builder::new().lua(&dir, "");
    let (config, _) = builder.write_config();
    let mut command = Command::new(program("talon-bench-guarded"));
    command.arg("lua-plugin").arg(config).arg(&dir);
    if quick {
        command.arg("--quick");
    }
    let mut plugin = Turns::start("lua, plugin", &mut command)?;
    plugin.turn()?;
    for round in 0..rounds {
        bench.probe.run_once();
        bench.progress.set_message(format!("lua, round {} of {rounds}", round + 1));
        turns::record(bench.book, plugin.turn()?, None);
    }
    Ok(())
}

/// The program of this name on the path.
fn found(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir: PathBuf| dir.join(name)).find(|file| is_file(file));
    found.with_context(|| format!("there is no {name}: tests/scripts/deps.sh bench installs it"))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
