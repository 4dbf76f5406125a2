//! The same events to one listener, to ten and to fifty.

use anyhow::Result;

use super::served::{Served, guarded};
use crate::figures::Unit;
use crate::guarded::EVENTS;
use crate::load::Load;
use crate::suites::Bench;

const CASE: &str = "events/fan-out";

/// All of them together are fewer than may listen to a supervisor (64): those of the previous turn may still
/// be disconnecting.
const LISTENERS: [(&str, usize); 3] = [("1 listener", 1), ("10 listeners", 10), ("50 listeners", 50)];

pub(super) fn run(bench: &mut Bench<'_>, served: &Served) -> Result<()> {
    bench.progress.set_message(CASE);
    let (rounds, millis) = if bench.plan.quick { (3, 200) } else { (7, 400) };
    let load = Load { content_bytes: 16, concurrency: 1, millis };
    for _ in 0..rounds {
        bench.probe.run_once();
        for (name, count) in LISTENERS {
            // They are started for each turn: listeners that stay connected would be served as well.
            let mut command = guarded("listeners");
            command.arg(served.supervisor.socket()).arg(count.to_string());
            let mut driver = served.driver(name, &mut command)?;
            driver.run_load(Load { millis: millis / 4, ..load })?;
            let made = driver.run_load(load)?;
            let mut page = bench.book.case(CASE, Some(LISTENERS[0].0));
            let events = made.outcome.calls_per_second * EVENTS as f64;
            page.add(name, "events", Unit::PerSecond, events);
            page.add(name, "deliveries", Unit::PerSecond, events * count as f64);
            let deliveries = (EVENTS * count) as f64;
            page.add(name, "CPU a delivery", Unit::Microseconds, made.cpu_us_per_call / deliveries);
        }
    }
    Ok(())
}
