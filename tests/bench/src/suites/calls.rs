//! Calls in a closed loop, by one caller up to 256: raw frames, bare tonic with one hop and with two,
//! go-plugin's host, and Talon in process and through `host.sock`.

use anyhow::Result;

use super::{Bench, Plan};
use crate::contenders::Contender;
use crate::driver::Driver;
use crate::figures::Unit;
use crate::load::Load;

struct Size {
    name: &'static str,
    bytes: usize,
}

const SIZES: [Size; 2] = [Size { name: "1 KiB", bytes: 1 << 10 }, Size { name: "64 KiB", bytes: 64 << 10 }];

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let Plan { quick, loaded } = bench.plan;
    let concurrencies: &[usize] = if quick || loaded { &[1, 64] } else { &[1, 8, 64, 256] };
    // One round more than is counted: the first fills caches, pools and windows.
    let (rounds, millis) = if quick { (5, 120) } else { (9, 400) };
    let mut contenders = contenders(bench).await?;
    for size in &SIZES {
        for concurrency in concurrencies {
            let case = format!("calls/{}/c{concurrency}", size.name);
            bench.progress.set_message(case.clone());
            let load = Load { content_bytes: size.bytes, concurrency: *concurrency, millis };
            for round in 0..=rounds {
                bench.probe.run_once();
                for driver in &mut contenders {
                    let made = driver.run_load(load)?;
                    if round == 0 {
                        continue;
                    }
                    let mut page = bench.book.case(&case, Some(Contender::Bare.name()));
                    page.add(driver.name, "p50", Unit::Microseconds, made.outcome.p50_us);
                    page.add(driver.name, "p99", Unit::Microseconds, made.outcome.p99_us);
                    page.add(driver.name, "calls", Unit::PerSecond, made.outcome.calls_per_second);
                    page.add(driver.name, "CPU a call", Unit::Microseconds, made.cpu_us_per_call);
                }
            }
        }
    }
    Ok(())
}

async fn contenders(bench: &mut Bench<'_>) -> Result<Vec<Driver>> {
    bench.progress.set_message("starting the contenders of calls");
    let mut contenders = Vec::new();
    for contender in Contender::ALL {
        match contender.start().await? {
            Some(driver) => contenders.push(driver),
            None => bench.book.note(
                "go-plugin's host: there is no Go, or not all of its libraries (tests/scripts/deps.sh bench)",
            ),
        }
    }
    Ok(contenders)
}
