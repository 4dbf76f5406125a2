//! What the gateway adds to `agent.sock` while half of what it can is asked of it: both at the same rate, in turns.

use std::process::Command;

use anyhow::{Context, Result};
use talon_tests::program;

use super::contenders::{AGENT_SOCKET, GATEWAY};
use super::system::System;
use crate::figures::Unit;
use crate::suites::Bench;
use crate::turns::{self, Measurement, Turns};

const CASE: &str = "gateway/half load";

pub(super) fn run(bench: &mut Bench<'_>, system: &System, per_second: f64) -> Result<()> {
    bench.progress.set_message(CASE);
    let (rounds, millis) = if bench.plan.quick { (3, 1000) } else { (15, 2000) };
    let pace =
        [CASE.to_owned(), String::new(), format!("--per-second={per_second}"), format!("--millis={millis}")];
    let start = |name: &'static str, mut command: Command| {
        let mut words = pace.clone();
        words[1] = name.to_owned();
        Turns::start(name, command.args(words))
    };
    let mut ours = Command::new(program("talon-bench-stock"));
    ours.arg("paced-completions").arg(system.gateway.to_string()).arg(&system.token);
    let mut ours = start(GATEWAY, ours)?;
    let mut socket = Command::new(program("talon-bench-stock"));
    socket.arg("paced-agent-completions").arg(system.supervisor.agent_socket());
    let mut socket = start(AGENT_SOCKET, socket)?;
    for round in 0..=rounds {
        bench.probe.run_once();
        let told = [socket.turn()?, ours.turn()?];
        // The first fills caches.
        if round == 0 {
            continue;
        }
        let [without, with] = [p99(&told[0])?, p99(&told[1])?];
        for told in told {
            turns::record(bench.book, told, Some(AGENT_SOCKET));
        }
        bench.book.case("gateway/added", None).add(GATEWAY, "added p99", Unit::Milliseconds, with - without);
    }
    Ok(())
}

fn p99(told: &[Measurement]) -> Result<f64> {
    told.iter().find(|told| told.metric == "p99").map(|told| told.value).context("a turn tells its p99")
}
