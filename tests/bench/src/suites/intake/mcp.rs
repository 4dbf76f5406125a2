//! MCP on both sides: a server behind the bridge compared with the same server asked directly, and Talon as a
//! server compared with the same calls through its socket.

use anyhow::{Context, Result};
use talon_tests::program;

use super::served::{SERVER, Served, guarded, stock, turns};
use crate::driver::Driver;
use crate::figures::Unit;
use crate::guarded::{ACTION, PLUGIN};
use crate::load::Load;
use crate::suites::Bench;

const DIRECTLY: &str = "over stdio";
const BRIDGED: &str = "behind the bridge";
const HOST: &str = "host.sock";
const TALON_MCP: &str = "talon mcp";

/// One call after the other: a session over pipes is sequential.
const LOAD: Load = Load { content_bytes: 1 << 10, concurrency: 1, millis: 0 };

pub(super) fn inwards(bench: &mut Bench<'_>, served: &Served) -> Result<()> {
    let server = served.supervisor.scratch.join("server.py");
    let mut directly = stock("mcp");
    directly.args(["echo", "text"]).arg(server);
    let directly = Driver::start(DIRECTLY, &mut directly, Vec::new(), served.supervisor.clone())?;
    let mut bridged = guarded("echo");
    bridged.arg(served.supervisor.socket()).arg(SERVER);
    let bridged = served.driver(BRIDGED, &mut bridged)?;
    side_by_side(bench, "mcp/in", DIRECTLY, [directly, bridged])
}

pub(super) fn outwards(bench: &mut Bench<'_>, served: &Served) -> Result<()> {
    let socket = served.supervisor.socket();
    let mut mcp = stock("mcp");
    mcp.arg(format!("{PLUGIN}__{ACTION}")).arg("bytes").arg(program("talon"));
    mcp.arg("--socket").arg(&socket).arg("mcp");
    let mcp = served.driver(TALON_MCP, &mut mcp).context("talon mcp")?;
    let host = served.driver(HOST, guarded("host").arg(&socket))?;
    side_by_side(bench, "mcp/out", HOST, [host, mcp])
}

fn side_by_side(
    bench: &mut Bench<'_>,
    case: &'static str,
    yardstick: &'static str,
    drivers: [Driver; 2],
) -> Result<()> {
    let mut loads = drivers.map(|driver| (driver, LOAD));
    turns(bench, case, &mut loads, |bench, name, made| {
        let mut page = bench.book.case(case, Some(yardstick));
        page.add(name, "p50", Unit::Microseconds, made.outcome.p50_us);
        page.add(name, "p99", Unit::Microseconds, made.outcome.p99_us);
        page.add(name, "calls", Unit::PerSecond, made.outcome.calls_per_second);
        page.add(name, "CPU a call", Unit::Microseconds, made.cpu_us_per_call);
    })
}
