//! The metrics that are sampled, and by how much each may differ between the two halves of a run.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use talon_tests::{Supervisor, descendants};

use super::trend::Allowance;
use crate::driver::cpu_seconds;
use crate::process_stats::{descriptors, name, own_memory_mib, threads};
use crate::table::number;

/// One metric.
pub(super) struct MetricSpec {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) allowed: Allowance,
}

const fn metric(name: &'static str, unit: &'static str, absolute: f64, relative: f64) -> MetricSpec {
    MetricSpec { name, unit, allowed: Allowance { absolute, relative } }
}

/// All metrics. Memory may differ by what allocators retain and return: up to half a mebibyte was seen
/// between any two samples of the supervisor's, and less between their medians. Descriptors and processes may
/// differ by a replacement in progress, which hardly affects a median; threads by how many pieces of blocking
/// work ever coincided, because tokio keeps threads that have work now and then; CPU time by the state of the
/// machine.
pub(super) const METRICS: [MetricSpec; 7] = [
    metric("memory", "MiB", 0.5, 0.01),
    metric("descriptors", "", 2.0, 0.0),
    metric("threads", "", 2.0, 0.0),
    metric("processes below it", "", 1.0, 0.0),
    metric("CPU", "% of a core", 2.0, 0.15),
    metric("memory of talon-state", "MiB", 0.5, 0.01),
    metric("descriptors of talon-state", "", 2.0, 0.0),
];

/// All metrics at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    /// The time since the run began.
    pub(super) seconds: f64,
    /// In the order of [`METRICS`].
    pub(super) values: [f64; METRICS.len()],
}

impl Sample {
    pub(super) fn summary(&self) -> String {
        let said = METRICS.iter().zip(self.values).take(5);
        let said = said.map(|(looked, value)| {
            let space = if looked.unit.is_empty() { "" } else { " " };
            format!("{} {}{space}{}", looked.name, number(value), looked.unit)
        });
        said.collect::<Vec<String>>().join(", ")
    }
}

/// Samples one supervisor.
pub(super) struct Sampler {
    supervisor: u32,
    state: u32,
    cpu: f64,
    since: Instant,
}

impl Sampler {
    pub(super) fn attach(supervisor: &Supervisor) -> Result<Self> {
        let named = |pid: &u32| name(*pid).as_deref() == Some("talon-state");
        let supervisor = supervisor.pid();
        let state = descendants(supervisor).into_iter().find(named).context("talon-state runs")?;
        let cpu = cpu_seconds(supervisor).context("the supervisor runs")?;
        Ok(Self { supervisor, state, cpu, since: Instant::now() })
    }

    /// Takes a sample; CPU time is that since the previous one.
    pub(super) fn sample(&mut self, at: Duration) -> Result<Sample> {
        let Self { supervisor, state, .. } = *self;
        let cpu = cpu_seconds(supervisor).context("the supervisor runs")?;
        let busy = (cpu - self.cpu) / self.since.elapsed().as_secs_f64().max(f64::EPSILON);
        (self.cpu, self.since) = (cpu, Instant::now());
        let values = [
            own_memory_mib(supervisor)?,
            descriptors(supervisor)? as f64,
            threads(supervisor)? as f64,
            descendants(supervisor).len() as f64,
            busy * 100.0,
            own_memory_mib(state)?,
            descriptors(state)? as f64,
        ];
        Ok(Sample { seconds: at.as_secs_f64(), values })
    }
}
