//! Many plugins: how long until all are ready, what running them costs, how long a call to one of them takes,
//! and how much a neighbour that crashes again and again costs the others.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_tests::{Builder, Scratch, ServiceManager, Supervisor, descendants, program};

use super::{Bench, Plan};
use crate::driver::{Driver, LoadResult};
use crate::figures::{CaseRecorder, Unit};
use crate::guarded::plugin_name;
use crate::load::Load;
use crate::process_stats::{CpuTime, memory_mib, name};

const TALON: &str = "Talon";
const BARE: &str = "bare spawner";
const BESIDE: &str = "beside it";
const WITHOUT: &str = "without it";
const CRASHING: &str = "crashes";

/// For the crashing neighbour, and for a plugin that is replaced while its old uid is still in use.
const EXTRA_UIDS: usize = 10;

/// Time for a first call of each plugin, which takes up to a few milliseconds, and for some more.
const WARM_UP_MS: u64 = 500;
const WARM_UP_MS_EACH: u64 = 4;

/// How much is measured.
struct Effort {
    counts: &'static [usize],
    rounds: usize,
    /// Rounds with an idle period; the other rounds have none.
    idle_rounds: usize,
    /// In the full run the default interval of health checks, so that each plugin has one in it.
    idle: Duration,
    load: Load,
}

const QUICK: Effort = Effort {
    counts: &[1, 10, 50],
    rounds: 3,
    idle_rounds: 1,
    idle: Duration::from_secs(3),
    load: Load { content_bytes: 1 << 10, concurrency: 1, millis: 200 },
};

const FULL: Effort = Effort {
    counts: &[1, 10, 100, 500],
    rounds: 5,
    idle_rounds: 2,
    idle: Duration::from_secs(30),
    load: Load { content_bytes: 1 << 10, concurrency: 1, millis: 1000 },
};

/// Beside busy neighbours: what the goals compare, without idle periods, because idle CPU is no ratio.
const LOADED: Effort = Effort { counts: &[1, 500], rounds: 3, idle_rounds: 0, ..FULL };

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let Plan { quick, loaded } = bench.plan;
    let much = match (quick, loaded) {
        // The short run has no goal of this suite.
        (true, true) => return Ok(()),
        (false, true) => LOADED,
        (true, false) => QUICK,
        (false, false) => FULL,
    };
    let manager = ServiceManager::new();
    // Not counted: the first start reads the programs from the disk.
    drop(bare(1)?);
    Talon::start(&manager, 1).await?.end().await?;
    for round in 0..much.rounds {
        for count in much.counts {
            bench.probe.run_once();
            bench.progress.set_message(format!("many/{count}, round {} of {}", round + 1, much.rounds));
            one_round(bench, &much, &manager, *count, round).await?;
        }
    }
    if loaded {
        return Ok(());
    }
    beside_a_crash_loop(bench, &much, &manager).await
}

/// Both start, are measured side by side while their plugins run, are called in turn, and end.
async fn one_round(
    bench: &mut Bench<'_>,
    much: &Effort,
    manager: &ServiceManager,
    count: usize,
    round: usize,
) -> Result<()> {
    // The order alternates: the second one starts while the first one's processes are there, asleep.
    let (mut talon, mut spawner) = if round.is_multiple_of(2) {
        (Talon::start(manager, count).await?, bare(count)?)
    } else {
        let spawner = bare(count)?;
        (Talon::start(manager, count).await?, spawner)
    };
    let pids = [(TALON, talon.supervisor.pid()), (BARE, spawner.driver.pid())];
    let mut page = bench.book.case(format!("many/{count}"), Some(BARE));
    page.add(TALON, "all ready", Unit::Milliseconds, talon.ready.as_secs_f64() * 1e3);
    page.add(BARE, "all ready", Unit::Milliseconds, spawner.ready.as_secs_f64() * 1e3);
    for (name, pid) in pids {
        page.add(name, "memory", Unit::Mebibytes, memory_mib(pid)?);
        page.add(name, "with monitors", Unit::Mebibytes, with_monitors_mib(pid)?);
    }
    // Not counted: the first calls open connections and fill caches on both sides. Each plugin is called
    // once.
    for driver in [&mut talon.driver, &mut spawner.driver] {
        driver.run_load(Load { millis: WARM_UP_MS + WARM_UP_MS_EACH * count as u64, ..much.load })?;
    }
    for (name, made) in
        [(TALON, talon.driver.run_load(much.load)?), (BARE, spawner.driver.run_load(much.load)?)]
    {
        times(&mut page, name, &made);
    }
    if round < much.idle_rounds {
        let before = [IdleCpu::begin(pids[0].1)?, IdleCpu::begin(pids[1].1)?];
        tokio::time::sleep(much.idle).await;
        for ((name, _), before) in pids.iter().zip(&before) {
            let [own, all] = before.percents()?;
            page.add(name, "idle CPU", Unit::PercentOfACore, own);
            page.add(name, "idle CPU with monitors", Unit::PercentOfACore, all);
        }
    }
    drop(spawner);
    talon.end().await
}

/// The memory of a process and of its monitors: a supervisor has a small process next to each jail, which
/// shares the supervisor's program text and so would reduce the supervisor's own share.
fn with_monitors_mib(pid: u32) -> Result<f64> {
    with_monitors(pid).map(memory_mib).sum()
}

/// The process first, then its monitors.
fn with_monitors(pid: u32) -> impl Iterator<Item = u32> {
    let monitors = descendants(pid).into_iter().filter(|pid| name(*pid).as_deref() == Some("talon-monitor"));
    std::iter::once(pid).chain(monitors)
}

/// The CPU time of a process and its monitors during an idle period.
struct IdleCpu {
    began: Instant,
    before: Vec<(u32, CpuTime)>,
}

impl IdleCpu {
    fn begin(pid: u32) -> Result<Self> {
        let before = with_monitors(pid).map(|pid| Ok((pid, CpuTime::of(pid)?))).collect::<Result<_>>()?;
        Ok(Self { began: Instant::now(), before })
    }

    /// The part of a core that the process took, and that all of them took together.
    fn percents(&self) -> Result<[f64; 2]> {
        let percent = |busy: Duration| busy.as_secs_f64() / self.began.elapsed().as_secs_f64() * 100.0;
        let each: Vec<f64> = self
            .before
            .iter()
            .map(|(pid, before)| Ok(percent(CpuTime::of(*pid)?.since(before))))
            .collect::<Result<_>>()?;
        Ok([each[0], each.iter().sum()])
    }
}

/// Ten healthy plugins and one that exits as soon as it is started, as often as a supervisor can be made to
/// restart it. It is stopped and started in turns, so that the others' calls with it and without it go to the
/// same processes.
async fn beside_a_crash_loop(bench: &mut Bench<'_>, much: &Effort, manager: &ServiceManager) -> Result<()> {
    const OTHERS: usize = 10;
    // The restart window is a tenth of a second, so that the backoff never grows and the number of deaths
    // never exceeds the limit.
    const IMMEDIATE_RESTARTS: &str =
        "enabled: false\nbackoff_initial: 1ms\nbackoff_max: 1ms\nrestart_window: 100ms\nmax_restarts: 4096";
    let case = format!("many/{OTHERS} beside a crash loop");
    bench.progress.set_message(case.clone());
    let builder = numbered_plugins(OTHERS).plugin(CRASHING, "/bin/false".as_ref(), &[], IMMEDIATE_RESTARTS);
    let mut talon = Talon::with(builder, manager, OTHERS).await?;
    talon.driver.run_load(much.load)?;
    for round in 0..much.rounds {
        bench.probe.run_once();
        // The order alternates, so that neither is always the later one.
        let order = if round.is_multiple_of(2) { [BESIDE, WITHOUT] } else { [WITHOUT, BESIDE] };
        for contender in order {
            if contender == BESIDE {
                // The request returns once the first attempt has failed, as intended.
                let started = talon.supervisor.client.start(CRASHING).await;
                ensure!(started.is_err(), "the neighbour does not crash");
            }
            // Not counted: the after-effects of starting or stopping it.
            talon.driver.run_load(Load { millis: WARM_UP_MS, ..much.load })?;
            let made = talon.driver.run_load(much.load)?;
            times(&mut bench.book.case(&case, Some(WITHOUT)), contender, &made);
            if contender == BESIDE {
                let deaths: u64 = talon.supervisor.client.plugin(CRASHING).await.restarts.values().sum();
                ensure!(deaths > 1, "the neighbour does not crash again and again");
                talon.supervisor.client.stop(CRASHING).await?;
            }
        }
    }
    talon.end().await
}

/// A supervisor, and the callers of its plugins.
struct Talon {
    driver: Driver,
    supervisor: Supervisor,
    ready: Duration,
}

impl Talon {
    /// It is ready when it notifies its service manager, which it does once every plugin is ready; a client
    /// that polled each plugin would add load.
    async fn start(manager: &ServiceManager, count: usize) -> Result<Self> {
        Self::with(numbered_plugins(count), manager, count).await
    }

    async fn with(builder: Builder, manager: &ServiceManager, count: usize) -> Result<Self> {
        manager.clear_messages();
        let builder = builder.env("NOTIFY_SOCKET", &manager.notify_socket()).without_waiting();
        let begin = Instant::now();
        let heard = async {
            manager.wait_message(|line| line == "READY=1").await;
            begin.elapsed()
        };
        let (supervisor, ready) = tokio::join!(Box::pin(builder.start()), heard);
        let listed = supervisor.client.list().await;
        let fine = listed.iter().filter(|plugin| plugin.state == "ready").count();
        ensure!(fine == count, "{fine} of {count} plugins are ready:\n{}", supervisor.log());
        let driver = callers(TALON, &supervisor, count)?;
        Ok(Self { driver, supervisor, ready })
    }

    /// Stops in order, so that the next one finds neither its processes nor its uids in use.
    async fn end(self) -> Result<()> {
        drop(self.driver);
        let stopped = self.supervisor.stop().await;
        ensure!(stopped.status.success() && stopped.processes.is_empty(), "{}", stopped.log);
        Ok(())
    }
}

fn numbered_plugins(count: usize) -> Builder {
    let program = program("talon-bench-plugin");
    let builder = Builder::new().room_for(count + EXTRA_UIDS);
    (0..count).fold(builder, |builder, number| builder.plugin(&plugin_name(number), &program, &[], ""))
}

fn callers(name: &'static str, supervisor: &Supervisor, count: usize) -> Result<Driver> {
    let mut command = Command::new(program("talon-bench-guarded"));
    command.arg("many").arg(supervisor.socket()).arg(count.to_string());
    Driver::start(name, &mut command, vec![supervisor.pid()], ())
}

/// The bare spawner calls its plugins itself.
struct Spawner {
    driver: Driver,
    ready: Duration,
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // A killed driver cannot end its children. Their pids stay valid for as long as it lives.
        for pid in descendants(self.driver.pid()) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
    }
}

fn bare(count: usize) -> Result<Spawner> {
    let mut command = Command::new(program("talon-bench-stock"));
    let sockets = Scratch::new();
    command.arg("spawner").arg(program("talon-bench-plugin")).arg(sockets.path()).arg(count.to_string());
    let begin = Instant::now();
    let driver = Driver::start(BARE, &mut command, Vec::new(), sockets)?;
    Ok(Spawner { driver, ready: begin.elapsed() })
}

fn times(page: &mut CaseRecorder<'_>, contender: &str, made: &LoadResult) {
    page.add(contender, "p50", Unit::Microseconds, made.outcome.p50_us);
    page.add(contender, "p99", Unit::Microseconds, made.outcome.p99_us);
}
