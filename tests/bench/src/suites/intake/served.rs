//! The supervisor of the suite, and the turns that its drivers take.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;
use talon_tests::{Builder, Supervisor, program, repository};

use crate::driver::{Driver, LoadResult};
use crate::guarded::PLUGIN;
use crate::load::Load;
use crate::suites::Bench;

/// The interpreter of the tests' MCP server.
pub(super) const PYTHON: &str = "/usr/bin/python3";
/// The plugin that is an MCP server.
pub(super) const SERVER: &str = "server";

/// As many concurrent calls as one turn of events has; and a log that never drops lines.
const CALLS: &str = "concurrency: 256\nqueue: 256";
const LOG: &str = "log:\n  lines_per_second: 1000000000\n  burst_lines: 1000000000\n";
/// The plugins' lines are stored for `talon plugin logs` only: otherwise we would have to read them in the
/// supervisor's own log.
const OWN_LOG: &str = "info,plugin=off";

/// The supervisor of the suite.
pub(super) struct Served {
    pub(super) supervisor: Arc<Supervisor>,
    /// Whether there is an MCP server among its plugins.
    pub(super) has_server: bool,
}

impl Served {
    /// Starts it.
    pub(super) async fn start() -> Self {
        let mut builder =
            Builder::new().plugin(PLUGIN, &program("talon-bench-plugin"), &[], CALLS).config(LOG);
        let has_server = Path::new(PYTHON).exists();
        if has_server {
            // Installed where every uid can read it: a checkout may be below a home directory.
            let server = builder.scratch().install(&repository().join("tests/mcp/server.py"), "server.py");
            builder = builder.plugin(SERVER, &server, &[], "dialect: mcp");
        }
        let supervisor = builder.env("TALON_LOG", OWN_LOG).start().await;
        Self { supervisor: Arc::new(supervisor), has_server }
    }

    /// A driver whose calls this supervisor answers, and whose CPU time includes the supervisor's.
    pub(super) fn driver(&self, name: &'static str, command: &mut Command) -> Result<Driver> {
        Driver::start(name, command, vec![self.supervisor.pid()], self.supervisor.clone())
    }
}

pub(super) fn guarded(part: &str) -> Command {
    let mut command = Command::new(program("talon-bench-guarded"));
    command.arg(part);
    command
}

pub(super) fn stock(part: &str) -> Command {
    let mut command = Command::new(program("talon-bench-stock"));
    command.arg(part);
    command
}

/// All take turns with the same load; each figure of each round is recorded.
pub(super) fn turns(
    bench: &mut Bench<'_>,
    case: &'static str,
    loads: &mut [(Driver, Load)],
    mut tell: impl FnMut(&mut Bench<'_>, &str, &LoadResult),
) -> Result<()> {
    bench.progress.set_message(case);
    // One round more than is counted: the first fills caches.
    let (rounds, millis) = if bench.plan.quick { (3, 200) } else { (7, 400) };
    for round in 0..=rounds {
        bench.probe.run_once();
        for (driver, load) in &mut *loads {
            let made = driver.run_load(Load { millis, ..*load })?;
            if round > 0 {
                tell(bench, driver.name, &made);
            }
        }
    }
    Ok(())
}
