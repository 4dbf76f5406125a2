//! Lines that a plugin logs, none of which is dropped, compared with a pipe that is read line by line.

use anyhow::Result;

use super::served::{Served, guarded, stock, turns};
use crate::driver::Driver;
use crate::figures::Unit;
use crate::guarded::LINES;
use crate::load::Load;
use crate::suites::Bench;

const CASE: &str = "log/intake";
const PIPE: &str = "pipe";

pub(super) fn run(bench: &mut Bench<'_>, served: &Served) -> Result<()> {
    let pipe = Driver::start(PIPE, &mut stock("pipe-reader"), Vec::new(), ())?;
    let talon = served.driver("Talon", guarded("lines").arg(served.supervisor.socket()))?;
    let load = Load { content_bytes: 0, concurrency: 1, millis: 0 };
    let mut loads = [(pipe, load), (talon, load)];
    turns(bench, CASE, &mut loads, |bench, name, made| {
        let mut page = bench.book.case(CASE, Some(PIPE));
        page.add(name, "lines", Unit::PerSecond, made.outcome.calls_per_second * LINES as f64);
        page.add(name, "CPU a line", Unit::Microseconds, made.cpu_us_per_call / LINES as f64);
    })
}
