//! Chat completions in a closed loop, whole and streamed, and turns that are stored.

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum as _;
use talon_tests::program;

use super::contenders::{AGENT_SOCKET, GATEWAY, LITELLM};
use super::litellm::LiteLlm;
use super::system::System;
use crate::driver::Driver;
use crate::figures::Unit;
use crate::load::Load;
use crate::samples::Samples;
use crate::stock::completions::Question;
use crate::suites::Bench;

const DIRECT: &str = "the model alone";
const STORED: &str = "gateway, stored";
/// Enough to keep two cores busy, and fewer than any contender refuses.
const CALLERS: usize = 16;

/// Returns how many whole completions a second the gateway answers.
pub(super) async fn run(bench: &mut Bench<'_>, system: &System) -> Result<f64> {
    let rival = match LiteLlm::start(system.model.address).await? {
        Some(rival) => Some(Arc::new(rival)),
        None => {
            bench.book.note("LiteLLM: it is not installed (tests/scripts/deps.sh bench)");
            None
        }
    };
    let mut rate = 0.0;
    for (case, question) in
        [("gateway/completions", Question::Whole), ("gateway/streams", Question::Streamed)]
    {
        bench.progress.set_message(case);
        let mut drivers = contenders(system, rival.as_ref(), question)?;
        let measured = turns(bench, case, &mut drivers)?;
        if question == Question::Whole {
            rate = measured;
        }
    }
    Ok(rate)
}

fn contenders(system: &System, rival: Option<&Arc<LiteLlm>>, question: Question) -> Result<Vec<Driver>> {
    let model = system.model.pid();
    let talon = vec![system.supervisor.pid(), model];
    let asks = |address: std::net::SocketAddr, token: &str, question: Question| {
        let mut command = Command::new(program("talon-bench-stock"));
        command.arg("completions").arg(address.to_string()).arg(token);
        let question = question.to_possible_value().context("every question has a name")?;
        command.arg(question.get_name());
        anyhow::Ok(command)
    };
    let mut drivers = Vec::new();
    let mut direct = asks(system.model.address, "none", question)?;
    drivers.push(Driver::start(DIRECT, &mut direct, vec![model], Arc::clone(&system.model))?);
    if let Some(rival) = rival {
        let mut theirs = asks(rival.address, rival.key(), question)?;
        drivers.push(Driver::start(LITELLM, &mut theirs, vec![rival.pid(), model], Arc::clone(rival))?);
    }
    let mut ours = asks(system.gateway, &system.token, question)?;
    drivers.push(Driver::start(GATEWAY, &mut ours, talon.clone(), Arc::clone(&system.supervisor))?);
    if question == Question::Whole {
        let mut socket = Command::new(program("talon-bench-stock"));
        socket.arg("agent-completions").arg(system.supervisor.agent_socket());
        drivers.push(Driver::start(
            AGENT_SOCKET,
            &mut socket,
            talon.clone(),
            Arc::clone(&system.supervisor),
        )?);
        let mut stored = asks(system.gateway, &system.token, Question::Stored)?;
        drivers.push(Driver::start(STORED, &mut stored, talon, Arc::clone(&system.supervisor))?);
    }
    Ok(drivers)
}

/// All take turns; returns the median of the gateway's rates.
fn turns(bench: &mut Bench<'_>, case: &'static str, drivers: &mut [Driver]) -> Result<f64> {
    // One round more than is counted: the first fills caches.
    let (rounds, millis) = if bench.plan.quick { (3, 400) } else { (9, 1000) };
    let load = Load { content_bytes: 0, concurrency: CALLERS, millis };
    let mut rates = Samples::default();
    for round in 0..=rounds {
        bench.probe.run_once();
        for driver in &mut *drivers {
            let made = driver.run_load(load)?;
            if round == 0 {
                continue;
            }
            if driver.name == GATEWAY {
                rates.0.push(made.outcome.calls_per_second);
            }
            let mut page = bench.book.case(case, Some(LITELLM));
            page.add(driver.name, "answers", Unit::PerSecond, made.outcome.calls_per_second);
            page.add(driver.name, "p50", Unit::Milliseconds, made.outcome.p50_us / 1e3);
            page.add(driver.name, "p99", Unit::Milliseconds, made.outcome.p99_us / 1e3);
            page.add(driver.name, "CPU an answer", Unit::Microseconds, made.cpu_us_per_call);
        }
    }
    rates.spread().map(|spread| spread.median).context("the gateway took its turns")
}
