//! A plugin's reads and durable writes compared with SQLite alone on the same disk.

use std::os::unix::process::CommandExt as _;

use anyhow::{Context, Result};
use talon_tests::state::socket_of;
use talon_tests::{is_root, program};

use super::served::{Served, stock, turns};
use crate::driver::Driver;
use crate::figures::Unit;
use crate::guarded::PLUGIN;
use crate::load::Load;
use crate::suites::Bench;

const ALONE: &str = "SQLite alone";
const ONE: &str = "plugin's state, one caller";
const MANY: &str = "plugin's state, 16 callers";
const CALLERS: usize = 16;

pub(super) async fn run(bench: &mut Bench<'_>, served: &Served) -> Result<()> {
    for (case, what) in [("state/get", "get"), ("state/set", "set")] {
        let alone = served.supervisor.scratch.join(&format!("alone-{what}/state.db"));
        let alone = Driver::start(
            ALONE,
            stock("sqlite").arg(alone).arg(what),
            Vec::new(),
            served.supervisor.clone(),
        )?;
        let one = plugin(ONE, served, what).await?;
        let many = plugin(MANY, served, what).await?;
        let load = Load { content_bytes: 0, concurrency: 1, millis: 0 };
        let mut loads = [(alone, load), (one, load), (many, Load { concurrency: CALLERS, ..load })];
        turns(bench, case, &mut loads, |bench, name, made| {
            let mut page = bench.book.case(case, Some(ALONE));
            page.add(name, what, Unit::PerSecond, made.outcome.calls_per_second);
            page.add(name, "p50", Unit::Microseconds, made.outcome.p50_us);
        })?;
    }
    Ok(())
}

/// The socket and the peer's uid identify the plugin, so the driver needs the plugin's uid.
async fn plugin(name: &'static str, served: &Served, what: &str) -> Result<Driver> {
    let supervisor = &served.supervisor;
    let copy = supervisor.scratch.join("bin/talon-bench-stock");
    if !copy.is_file() {
        // The plugin's uid may not read our build directory.
        supervisor.scratch.install(&program("talon-bench-stock"), "bin/talon-bench-stock");
    }
    let socket = socket_of(supervisor, PLUGIN).await;
    let mut command = std::process::Command::new(copy);
    command.arg("state").arg(socket).arg(what);
    if is_root() {
        let plugin = supervisor.client.plugin(PLUGIN).await;
        let uid = plugin.instances.first().context("it runs")?.uid;
        command.uid(uid).gid(uid);
    }
    served.driver(name, &mut command)
}
