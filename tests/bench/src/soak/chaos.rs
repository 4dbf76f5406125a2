//! The faults injected into a supervisor in a soak: a plugin is killed, the configuration changes, a plugin
//! is replaced.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::fixture::{Fixture, KILLED, REPLACED};
use super::totals::SoakTotals;
use crate::machine::Probe;

/// Seconds between two of each: without a common divisor, so that each comes before, after and together with
/// the others.
const KILL_SECONDS: u64 = 3;
const RELOAD_SECONDS: u64 = 7;
const REPLACE_SECONDS: u64 = 11;

/// Injects faults for this long.
pub(super) async fn inject(
    scene: &mut Fixture,
    length: Duration,
    tally: &SoakTotals,
    probe: &mut Probe,
) -> Result<()> {
    let begin = Instant::now();
    let mut second = tokio::time::interval(Duration::from_secs(1));
    for number in 1_u64.. {
        second.tick().await;
        if begin.elapsed() >= length {
            break;
        }
        let due = [KILL_SECONDS, RELOAD_SECONDS, REPLACE_SECONDS].map(|every| number.is_multiple_of(every));
        for (due, count) in due.iter().zip(&tally.troubles) {
            count.fetch_add(u64::from(*due), Ordering::Relaxed);
        }
        if due[0] {
            kill_one(scene).await?;
        }
        if due[1] {
            scene.reload(tally).await;
        }
        if due[2]
            && let Err(status) = scene.supervisor.client.reload_plugin(REPLACED).await
        {
            tally.problem(format!("the plugin was not replaced: {status}"));
        }
        probe.run_once();
    }
    Ok(())
}

async fn kill_one(scene: &Fixture) -> Result<()> {
    let plugin = scene.supervisor.client.plugin(KILLED).await;
    let pid = plugin.instances.first().context("it has an instance")?.pid;
    // 0: it is being restarted.
    if pid != 0 {
        // It may have ended meanwhile; its pid is not reused so soon.
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    }
    Ok(())
}
