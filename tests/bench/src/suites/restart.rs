//! Kills a plugin, and measures the time until its supervisor reports that, the time until it answers again,
//! and how many calls fail.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_proto::host::{Event, Outcome, Plugin};
use talon_tests::{Builder, Client, Supervisor, program};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::Streaming;

use super::Bench;
use crate::figures::{CaseRecorder, Unit};
use crate::guarded::ACTION;

const TALON: &str = "Talon";

/// Measures the restarts without the backoff, which the operator chooses.
const IMMEDIATE_RESTARTS: &str = "backoff_initial: 1ms\nbackoff_max: 1ms\nmax_restarts: 4096";

const QUICKLY: &str = "quickly";

/// The callers of a plugin that is killed alone. Of those that are killed together, each has one caller.
const CALLERS: usize = 8;

/// How many are killed together.
const MANY: usize = 100;

/// Uids that are unused on this machine, for the plugins when run as root; the ranges of tests' supervisors
/// are smaller.
const UIDS: &str = "92300-92500";

/// Only a limit for hangs, not an expectation of speed.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (one, many) = if bench.plan.quick { (9, 2) } else { (41, 9) };
    alone(bench, one).await?;
    if bench.plan.loaded {
        return Ok(());
    }
    together(bench, many).await
}

async fn alone(bench: &mut Bench<'_>, rounds: usize) -> Result<()> {
    bench.progress.set_message("restart");
    let plugin = program("talon-bench-plugin");
    let supervisor = Builder::new().plugin(QUICKLY, &plugin, &[], IMMEDIATE_RESTARTS).start().await;
    let client = &supervisor.client;
    // One round more than is counted: the first fills caches.
    for round in 0..=rounds {
        bench.probe.run_once();
        let cold = cold_start(client).await?;
        let quick = KillTimings::all(client, &[QUICKLY.to_owned()]).await?;
        let failed = FailedCalls::meanwhile(client, &[QUICKLY.to_owned()], CALLERS).await?;
        if round == 0 {
            continue;
        }
        let mut page = bench.book.case("restart/one", None);
        page.add(TALON, "known", Unit::Milliseconds, milliseconds(quick.known));
        page.add(TALON, "serving", Unit::Milliseconds, milliseconds(quick.serving));
        page.add(TALON, "cold start", Unit::Milliseconds, milliseconds(cold));
        failed.record(&mut page);
    }
    ended(supervisor).await
}

async fn together(bench: &mut Bench<'_>, rounds: usize) -> Result<()> {
    bench.progress.set_message(format!("restart, {MANY} at once"));
    let names: Vec<String> = (0..MANY).map(|number| format!("many-{number}")).collect();
    let plugin = program("talon-bench-plugin");
    let mut builder = Builder::new();
    if talon_tests::is_root() {
        builder = builder.env("TALON_SANDBOX__UID_RANGE", UIDS);
    }
    for name in &names {
        builder = builder.plugin(name, &plugin, &[], IMMEDIATE_RESTARTS);
    }
    let supervisor = builder.start().await;
    for round in 0..=rounds {
        bench.probe.run_once();
        let killed = KillTimings::all(&supervisor.client, &names).await?;
        let failed = FailedCalls::meanwhile(&supervisor.client, &names, 1).await?;
        if round > 0 {
            let mut page = bench.book.case(format!("restart/{MANY} at once"), None);
            page.add(TALON, "all known", Unit::Milliseconds, milliseconds(killed.known));
            page.add(TALON, "all serving", Unit::Milliseconds, milliseconds(killed.serving));
            failed.record(&mut page);
        }
    }
    ended(supervisor).await
}

/// The times after a SIGKILL.
struct KillTimings {
    /// Until the exit events had come.
    known: Duration,
    /// Until each had answered a call.
    serving: Duration,
}

impl KillTimings {
    /// Kills these plugins' processes one right after the other.
    async fn all(client: &Client, names: &[String]) -> Result<Self> {
        let watched = if let [name] = names { name } else { "" };
        let mut events = client.events(watched).await;
        let pids = pids(client, names).await?;
        let begin = Instant::now();
        for pid in pids.values() {
            kill(*pid, Signal::SIGKILL)?;
        }
        within(until_exited(&mut events, names.len()), "the news of all deaths").await??;
        let known = begin.elapsed();
        // Only now, so that no old process can answer.
        let mut calls: JoinSet<()> =
            names.iter().map(|name| until_answered(client.clone(), name.clone())).collect();
        while let Some(answered) = within(calls.join_next(), "an answer from each").await? {
            answered.context("a call panicked")?;
        }
        Ok(Self { known, serving: begin.elapsed() })
    }
}

/// From the operator's request to the first answer.
async fn cold_start(client: &Client) -> Result<Duration> {
    client.stop(QUICKLY).await?;
    let begin = Instant::now();
    client.start(QUICKLY).await?;
    until_answered(client.clone(), QUICKLY.to_owned()).await;
    Ok(begin.elapsed())
}

/// Calls that failed while a plugin was killed and restarted.
#[derive(Debug, Clone, Copy, Default)]
struct FailedCalls {
    /// Those in flight, and those that did not reach it.
    failed: u32,
    /// Those that the circuit breaker refused after so many faults at once. How many depends on how soon
    /// callers retry, and these retry at once.
    refused: u32,
}

impl FailedCalls {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok => {}
            Outcome::Refused => self.refused += 1,
            _ => self.failed += 1,
        }
    }

    fn record(self, page: &mut CaseRecorder<'_>) {
        page.add(TALON, "calls failed", Unit::Count, f64::from(self.failed));
        page.add(TALON, "calls refused", Unit::Count, f64::from(self.refused));
    }

    /// Kills the plugins during calls by this many callers each, and waits until they are back.
    async fn meanwhile(client: &Client, names: &[String], callers: usize) -> Result<Self> {
        let before = pids(client, names).await?;
        let (end, ended) = watch::channel(false);
        let (first, mut calling) = watch::channel(0_usize);
        let mut calls = JoinSet::new();
        for name in names.iter().flat_map(|name| std::iter::repeat_n(name, callers)) {
            let (client, name, ended, first) = (client.clone(), name.clone(), ended.clone(), first.clone());
            calls.spawn(async move {
                let mut failed = Self::default();
                failed.count(outcome(&client, &name).await);
                first.send_modify(|calling| *calling += 1);
                while !*ended.borrow() {
                    failed.count(outcome(&client, &name).await);
                }
                failed
            });
        }
        // All of them are calling.
        let all_call = |calling: &usize| *calling == names.len() * callers;
        within(calling.wait_for(all_call), "the first calls").await??;
        for pid in before.values() {
            kill(*pid, Signal::SIGKILL)?;
        }
        for (name, before) in &before {
            let is_back =
                |plugin: &Plugin| plugin.state == "ready" && pid(plugin).is_ok_and(|now| now != *before);
            client.wait_for(name, "back", is_back).await;
        }
        end.send_replace(true);
        let mut all = Self::default();
        while let Some(caller) = within(calls.join_next(), "the callers' end").await? {
            let Self { failed, refused } = caller.context("a caller panicked")?;
            all = Self { failed: all.failed + failed, refused: all.refused + refused };
        }
        Ok(all)
    }
}

async fn until_exited(events: &mut Streaming<Event>, count: usize) -> Result<()> {
    let mut exited = 0;
    while exited < count {
        exited += usize::from(is_death(&events.message().await?.context("the events go on")?));
    }
    Ok(())
}

/// A plugin that was stopped also has an exit event.
fn is_death(event: &Event) -> bool {
    event.kind == "plugin_exited" && event.fields.get("planned").is_none_or(|planned| planned != "true")
}

/// A call that comes too early waits for the plugin, or fails and is retried.
async fn until_answered(client: Client, plugin: String) {
    while outcome(&client, &plugin).await != Outcome::Ok {}
}

async fn outcome(client: &Client, plugin: &str) -> Outcome {
    let answer = client.try_call(plugin, ACTION, &[("bytes", "1024")]).await;
    answer.map_or(Outcome::HostFault, |answer| answer.outcome())
}

async fn pids(client: &Client, names: &[String]) -> Result<HashMap<String, Pid>> {
    let plugins = client.list().await.into_iter().filter(|plugin| names.contains(&plugin.name));
    let pids: HashMap<_, _> =
        plugins.map(|plugin| Ok((plugin.name.clone(), pid(&plugin)?))).collect::<Result<_>>()?;
    ensure!(pids.len() == names.len(), "{} of {} plugins are there", pids.len(), names.len());
    Ok(pids)
}

fn pid(plugin: &Plugin) -> Result<Pid> {
    let instance = plugin.instances.first().filter(|instance| instance.pid != 0);
    let pid = instance.with_context(|| format!("{} does not run: {}", plugin.name, plugin.reason))?.pid;
    Ok(Pid::from_raw(pid.cast_signed()))
}

async fn within<T>(what: impl Future<Output = T>, name: &str) -> Result<T> {
    tokio::time::timeout(PATIENCE, what).await.with_context(|| format!("{name}: not within {PATIENCE:?}"))
}

async fn ended(supervisor: Supervisor) -> Result<()> {
    let stopped = supervisor.stop().await;
    ensure!(stopped.status.success(), "the supervisor ended with {}:\n{}", stopped.status, stopped.log);
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_no_failure_and_a_refusal_is_not_the_plugins() {
        let mut all = FailedCalls::default();
        for outcome in [Outcome::Ok, Outcome::Refused, Outcome::HostFault, Outcome::Refused] {
            all.count(outcome);
        }
        assert_eq!((all.failed, all.refused), (1, 2));
    }

    #[test]
    fn a_stop_is_no_death() {
        let event = |kind: &str, planned: &str| Event {
            kind: kind.to_owned(),
            fields: [("planned".to_owned(), planned.to_owned())].into(),
            ..Event::default()
        };
        assert!(is_death(&event("plugin_exited", "false")));
        assert!(!is_death(&event("plugin_exited", "true")));
        assert!(!is_death(&event("state_changed", "false")));
    }
}
