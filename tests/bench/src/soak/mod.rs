//! A long run of everything at once: `talon-bench soak`, `make soak`.
//!
//! A supervisor serves clients of every kind while plugins are killed and replaced and its configuration
//! changes. It is sampled all the time, and at the end each metric has to be flat: a process that lives for
//! months must not take a little more of anything with every call, every crash or every reload.
//!
//! | file | what |
//! |---|---|
//! | `fixture` | the plugins, and the configuration |
//! | `clients` | the clients that call and listen |
//! | `chaos` | kills and reloads |
//! | `sampler` | what is sampled, and how much it may grow |
//! | `trend` | slope, halves and verdict |
//! | `report` | the result as text and JSON |

mod chaos;
mod clients;
mod fixture;
mod report;
mod sampler;
mod totals;
pub mod trend;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::sync::watch;

use crate::machine::{Probe, RunOrigin};
use report::Report;
use sampler::{Sample, Sampler};
use totals::SoakTotals;

/// The part of a run that is not counted: caches, rings, pools and histograms fill up to their limits.
const WARM_UP: f64 = 0.15;
/// The minimum warm-up, which is some dozens of kills and reloads.
const SHORTEST_WARM_UP: Duration = Duration::from_secs(20);
/// How many samples are taken, however long the run is; more of them would not improve the slope.
const SAMPLES: u32 = 400;
/// The minimum interval between samples: sampling costs the supervisor time.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// How often progress is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

/// `talon-bench soak`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How long it runs.
    #[arg(long, value_name = "MINUTES", default_value_t = 30.0)]
    minutes: f64,
    /// Write all samples and the verdict to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Options {
    /// Runs the soak, prints the result, and returns by the exit code whether all metrics were flat and
    /// nothing failed unexpectedly.
    ///
    /// # Errors
    /// If the run itself could not be made.
    pub async fn run(self) -> Result<ExitCode> {
        ensure!(self.minutes >= 1.0, "a slope needs a minute at the least");
        let begin = Instant::now();
        let (mut report, probe) = Box::pin(soak(Duration::from_secs_f64(self.minutes * 60.0))).await?;
        report.origin = Some(RunOrigin::of_here(false, begin.elapsed(), &probe));
        print!("{}", report.show());
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(&report)? + "\n";
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(ExitCode::from(u8::from(!report.passed())))
    }
}

async fn soak(length: Duration) -> Result<(Report, Probe)> {
    let mut scene = fixture::start().await;
    let tally = Arc::new(SoakTotals::default());
    let (stop, going) = watch::channel(());
    let clients = clients::start(&scene.supervisor.socket(), &tally, &going).await?;
    let eyes = Sampler::attach(&scene.supervisor)?;
    let (samples, probe) = tokio::try_join!(take_samples(eyes, length, &tally), async {
        let mut probe = Probe::new("soak");
        chaos::inject(&mut scene, length, &tally, &mut probe).await?;
        Ok(probe)
    })?;
    drop((stop, going));
    for client in clients {
        client.await.context("a client panicked")?;
    }
    scene.all_ready(&tally).await;
    scene.stop_cleanly(&tally).await;
    Ok((Report::of(length, &tally, samples), probe))
}

/// Takes samples after the warm-up.
async fn take_samples(mut eyes: Sampler, length: Duration, tally: &SoakTotals) -> Result<Vec<Sample>> {
    let warm_up = length.mul_f64(WARM_UP).max(SHORTEST_WARM_UP);
    let mut pause = tokio::time::interval((length / SAMPLES).max(SHORTEST_PAUSE));
    let (begin, mut said) = (Instant::now(), Instant::now());
    let mut samples = Vec::new();
    while begin.elapsed() < length {
        pause.tick().await;
        let sample = eyes.sample(begin.elapsed())?;
        if said.elapsed() >= PROGRESS_INTERVAL {
            said = Instant::now();
            eprintln!("{:>5.0} s: {}; {}", sample.seconds, sample.summary(), tally.summary());
        }
        if begin.elapsed() >= warm_up {
            samples.push(sample);
        }
    }
    Ok(samples)
}
