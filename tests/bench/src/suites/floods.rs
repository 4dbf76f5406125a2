//! What a neighbour's callers notice while HTTP/2 control frames are sent without end, six kinds at once: by
//! plugins, and by clients of `host.sock`. Both sides are measured in turns on one supervisor.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use talon_tests::exposition::parse;
use talon_tests::{Builder, Client, Supervisor, http, program};
use tokio::task::JoinSet;

use super::{Bench, Plan};
use crate::driver::Driver;
use crate::figures::Unit;
use crate::guarded::PLUGIN;
use crate::load::Load;
use crate::neighbours::Neighbours;
use crate::stock::FLOODS;

const QUIET: &str = "quiet";
const BY_PLUGINS: &str = "six plugins flood";
const BY_CLIENTS: &str = "six clients flood";

/// The plugins that flood, and how. The first four do so as soon as they are connected, the others when the
/// call comes for which they send heads of an answer: one of a client's, and the host's own to read their
/// output.
const PLUGINS: [(&str, &[&str]); 6] = [
    ("settings", &["--flood", "settings"]),
    ("pings", &["--flood", "ping"]),
    ("windows", &["--flood", "window"]),
    ("priorities", &["--flood", "priority"]),
    (CALLED, &["--flood", "early-hints", "--flood-on-call"]),
    ("stdio", &["--flood", "early-hints", "--flood-on-stdio"]),
];
const CALLED: &str = "hints";

/// They are started again after every flood: five times a second, and as often as may be configured.
const RESTARTS: &str = "enabled: false\nbackoff_initial: 200ms\nbackoff_max: 200ms\nmax_restarts: 4096";
/// The plugin that floods when it is called has to be called again and again.
const NO_BREAKER: &str = "guard: { breaker: { failures: 1000 } }";
/// So many deaths of each plugin show that it floods again and again.
const MIN_DEATHS: u64 = 2;
/// Between two calls to the plugin that floods when it is called.
const CALL_PAUSE: Duration = Duration::from_millis(20);
/// Not counted: the after-effects of the beginning and the end of the floods.
const WARM_UP_MS: u64 = 300;

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let Plan { quick, loaded } = bench.plan;
    if loaded {
        // The floods are the neighbours here.
        return Ok(());
    }
    let (rounds, millis) = if quick { (3, 300) } else { (7, 1000) };
    let builder = Builder::new().room_for(2 * PLUGINS.len()).config(NO_BREAKER);
    let builder = builder.plugin(PLUGIN, &program("talon-bench-plugin"), &[], "concurrency: 64\nqueue: 64");
    let builder = PLUGINS
        .iter()
        .fold(builder, |builder, (name, args)| builder.plugin(name, &program("misbehave"), args, RESTARTS));
    // The plugins that flood wait for their turn: only the one that is measured settles.
    let supervisor = builder.without_waiting().start().await;
    supervisor.client.wait_state(PLUGIN, "ready").await;
    let mut command = Command::new(program("talon-bench-guarded"));
    command.arg("host").arg(supervisor.socket());
    let mut driver = Driver::start(QUIET, &mut command, vec![supervisor.pid()], ())?;
    for round in 0..rounds {
        for contender in [QUIET, BY_PLUGINS, BY_CLIENTS] {
            bench.probe.run_once();
            bench.progress.set_message(format!("floods, round {} of {rounds}: {contender}", round + 1));
            let floods = Floods::start(contender, &supervisor).await?;
            for concurrency in [1, 64] {
                let load = Load { content_bytes: 1 << 10, concurrency, millis };
                driver.run_load(Load { millis: WARM_UP_MS, ..load })?;
                let made = driver.run_load(load)?;
                let mut page = bench.book.case(format!("floods/c{concurrency}"), Some(QUIET));
                page.add(contender, "p50", Unit::Microseconds, made.outcome.p50_us);
                page.add(contender, "p99", Unit::Microseconds, made.outcome.p99_us);
                page.add(contender, "calls", Unit::PerSecond, made.outcome.calls_per_second);
            }
            floods.end(&supervisor).await?;
        }
    }
    drop(driver);
    let stopped = supervisor.stop().await;
    ensure!(stopped.status.success() && stopped.processes.is_empty(), "{}", stopped.log);
    Ok(())
}

/// The floods of one turn.
enum Floods {
    None,
    Clients { process: Neighbours, cut_off_before: f64 },
    Plugins { calls: JoinSet<()>, deaths_before: Vec<u64> },
}

impl Floods {
    async fn start(contender: &str, supervisor: &Supervisor) -> Result<Self> {
        match contender {
            BY_CLIENTS => {
                let cut_off_before = cut_off(supervisor).await;
                let process = Neighbours::start(1, || {
                    let mut command = Command::new(program("talon-bench-stock"));
                    command.arg("flood").arg(supervisor.socket());
                    command
                })?;
                Ok(Self::Clients { process, cut_off_before })
            }
            BY_PLUGINS => {
                let client = &supervisor.client;
                let deaths_before = deaths(client).await;
                for (name, _) in PLUGINS {
                    // Those that flood at once never get ready, so that this fails as intended.
                    let _ = client.start(name).await;
                }
                let mut calls = JoinSet::new();
                let client = client.clone();
                calls.spawn(async move {
                    loop {
                        let _ = client.call(CALLED, "echo", &[("text", "hi")]).await;
                        tokio::time::sleep(CALL_PAUSE).await;
                    }
                });
                Ok(Self::Plugins { calls, deaths_before })
            }
            _ => Ok(Self::None),
        }
    }

    /// Ends them.
    ///
    /// # Errors
    /// If there was none: the figures would be those of a quiet supervisor.
    async fn end(self, supervisor: &Supervisor) -> Result<()> {
        match self {
            Self::None => {}
            Self::Clients { process, cut_off_before } => {
                let cut_off = cut_off(supervisor).await - cut_off_before;
                process.end()?;
                ensure!(cut_off >= FLOODS as f64, "{cut_off} connections were closed for a flood");
            }
            Self::Plugins { mut calls, deaths_before } => {
                calls.shutdown().await;
                let deaths = deaths(&supervisor.client).await;
                for ((name, _), (before, after)) in PLUGINS.iter().zip(deaths_before.iter().zip(&deaths)) {
                    ensure!(after - before >= MIN_DEATHS, "{name} flooded {} times", after - before);
                    supervisor.client.stop(name).await?;
                }
            }
        }
        Ok(())
    }
}

async fn cut_off(supervisor: &Supervisor) -> f64 {
    let page = parse(&http::get(&supervisor.admin(), "/metrics").await.body);
    page.get("talon_connections_flooded_total").map_or(0.0, |family| family.sum(&[]))
}

async fn deaths(client: &Client) -> Vec<u64> {
    let mut deaths = Vec::new();
    for (name, _) in PLUGINS {
        deaths.push(client.plugin(name).await.restarts.values().sum());
    }
    deaths
}
