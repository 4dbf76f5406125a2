//! Resource usage of processes: read on demand, at most once a second.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System};
use talon_plugin::{InstanceReading, Reading, Registry};
use talon_proto::host;
use tokio::sync::{Mutex, watch};

use super::process_tree;

/// The shortest time between two readings. A graph shows no more detail, and at 500 plugins a reading takes
/// some ten milliseconds of a thread.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of processes that a reading inspects individually, over all plugins; only those without a
/// cgroup.
const MAX_PROCESSES: usize = 8192;

/// Reads the usage of processes. Clones share state.
#[derive(Clone)]
pub struct UsageReader {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    sums: Mutex<Sums>,
    latest: watch::Sender<Arc<UsageReading>>,
}

/// One reading.
#[derive(Debug, Clone, Default)]
pub struct UsageReading {
    at: Option<Instant>,
    /// By plugin and instance.
    instances: BTreeMap<String, BTreeMap<u32, host::Usage>>,
    /// Processor time by plugin, over all its processes so far.
    cpu: BTreeMap<String, Duration>,
    /// The supervisor itself.
    pub supervisor: SupervisorUsage,
}

/// Resource usage of the supervisor itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct SupervisorUsage {
    /// Processor time.
    pub cpu: Duration,
    /// Resident memory.
    pub memory_bytes: u64,
    /// Threads.
    pub threads: usize,
    /// Open descriptors.
    pub open_fds: usize,
    /// The limit of open descriptors.
    pub max_fds: usize,
}

/// Processor time of a plugin over all its processes: each reading adds the usage since the previous one. So
/// it only increases, and lacks what a process used between its last reading and its end.
#[derive(Default)]
struct Sums {
    last: HashMap<(String, u32), (u64, Duration)>,
    cpu: BTreeMap<String, Duration>,
}

impl UsageReader {
    /// A reader without a reading.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        let latest = watch::Sender::new(Arc::default());
        Self { inner: Arc::new(Inner { registry, sums: Mutex::default(), latest }) }
    }

    /// The current usage, at most a second old.
    pub async fn read(&self) -> Arc<UsageReading> {
        let mut sums = self.inner.sums.lock().await;
        let latest = self.latest();
        if latest.at.is_some_and(|at| at.elapsed() < MIN_INTERVAL) {
            return latest;
        }
        let registry = self.inner.registry.clone();
        // It reads a handful of files for each plugin.
        let Ok(read) = tokio::task::spawn_blocking(move || scan(&registry)).await else { return latest };
        let readout = Arc::new(sums.add(read));
        self.inner.latest.send_replace(Arc::clone(&readout));
        readout
    }

    /// The latest reading, without a new one.
    #[must_use]
    pub fn latest(&self) -> Arc<UsageReading> {
        Arc::clone(&self.inner.latest.borrow())
    }
}

impl UsageReading {
    /// The usage of an instance; `None` if the reading does not have it.
    #[must_use]
    pub fn instance(&self, plugin: &str, index: u32) -> Option<host::Usage> {
        self.instances.get(plugin)?.get(&index).cloned()
    }

    /// The usage of a plugin: processor time over all its processes so far; memory and number of the current
    /// ones.
    #[must_use]
    pub fn plugin(&self, plugin: &str) -> Option<(Duration, u64, u64)> {
        let instances = self.instances.get(plugin)?;
        let memory = instances.values().map(|usage| usage.memory_bytes).sum();
        let processes = instances.values().map(|usage| u64::from(usage.processes)).sum();
        Some((self.cpu.get(plugin).copied().unwrap_or_default(), memory, processes))
    }

    /// The supervisor's own usage, for the wire.
    #[must_use]
    pub fn supervisor_usage(&self) -> host::Usage {
        usage(self.supervisor.cpu, self.supervisor.memory_bytes, 1, "processes")
    }
}

impl Sums {
    fn add(&mut self, looked: UsageScan) -> UsageReading {
        let UsageScan { supervisor: own, plugins } = looked;
        let mut instances: BTreeMap<String, BTreeMap<u32, host::Usage>> = BTreeMap::new();
        self.cpu.retain(|plugin, _| plugins.contains_key(plugin));
        self.last.retain(|(plugin, _), _| plugins.contains_key(plugin));
        for (plugin, readings) in plugins {
            let of_plugin = instances.entry(plugin.clone()).or_default();
            let sum = self.cpu.entry(plugin.clone()).or_default();
            for (index, generation, used) in readings {
                let now = Duration::from_micros(used.cpu_us);
                let last = self.last.insert((plugin.clone(), index), (generation, now));
                let before = last.filter(|(of, _)| *of == generation).map_or(Duration::ZERO, |(_, cpu)| cpu);
                *sum += now.saturating_sub(before);
                of_plugin.insert(index, used);
            }
        }
        UsageReading { at: Some(Instant::now()), instances, cpu: self.cpu.clone(), supervisor: own }
    }
}

struct UsageScan {
    supervisor: SupervisorUsage,
    plugins: BTreeMap<String, Vec<(u32, u64, host::Usage)>>,
}

fn scan(registry: &Registry) -> UsageScan {
    let plugins = registry.list();
    let readings: Vec<(String, InstanceReading)> = plugins
        .iter()
        .flat_map(|plugin| plugin.readings().into_iter().map(|reading| (plugin.name().to_string(), reading)))
        .collect();
    let mut room = MAX_PROCESSES;
    let trees: Vec<Vec<Pid>> = readings
        .iter()
        .map(|(_, reading)| match reading.reading {
            Reading::Cgroup { .. } => Vec::new(),
            Reading::ProcessTree { pid } => {
                let mut tree = process_tree::descendants(pid);
                tree.truncate(room);
                room -= tree.len();
                tree.into_iter().map(Pid::from_u32).collect()
            }
        })
        .collect();
    let me = Pid::from_u32(std::process::id());
    let pids: Vec<Pid> = trees.iter().flatten().copied().chain([me]).collect();
    // Without /proc nothing is visible, and the values are empty.
    let mut system = System::new().ok();
    let what = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
    if let Some(system) = &mut system {
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&pids), true, what);
    }
    let process = |pid: &Pid| system.as_ref()?.process(*pid);

    let mut found: BTreeMap<String, Vec<(u32, u64, host::Usage)>> =
        plugins.iter().map(|plugin| (plugin.name().to_string(), Vec::new())).collect();
    for ((plugin, InstanceReading { index, generation, reading }), tree) in readings.into_iter().zip(&trees) {
        let used = match reading {
            Reading::Cgroup { cpu, memory_bytes, processes } => usage(cpu, memory_bytes, processes, "cgroup"),
            Reading::ProcessTree { .. } => sum(tree.iter().filter_map(process)),
        };
        found.entry(plugin).or_default().push((index, generation, used));
    }
    UsageScan { supervisor: process(&me).map(process_usage).unwrap_or_default(), plugins: found }
}

fn process_usage(process: &Process) -> SupervisorUsage {
    SupervisorUsage {
        cpu: Duration::from_millis(process.accumulated_cpu_time()),
        memory_bytes: process.memory(),
        threads: std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count),
        open_fds: process.open_files().unwrap_or_default(),
        max_fds: process.open_files_limit().unwrap_or_default(),
    }
}

fn sum<'a>(processes: impl Iterator<Item = &'a Process>) -> host::Usage {
    let (mut cpu, mut memory, mut count) = (Duration::ZERO, 0, 0);
    for process in processes {
        cpu += Duration::from_millis(process.accumulated_cpu_time());
        memory += process.memory();
        count += 1;
    }
    usage(cpu, memory, count, "processes")
}

fn usage(cpu: Duration, memory_bytes: u64, processes: u64, source: &str) -> host::Usage {
    host::Usage {
        cpu_us: u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX),
        memory_bytes,
        processes: u32::try_from(processes).unwrap_or(u32::MAX),
        source: source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(readings: &[(&str, u32, u64, u64)]) -> UsageScan {
        let mut plugins: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (plugin, index, generation, cpu_us) in readings {
            let used = usage(Duration::from_micros(*cpu_us), 10, 2, "cgroup");
            plugins.entry((*plugin).to_owned()).or_default().push((*index, *generation, used));
        }
        UsageScan { supervisor: SupervisorUsage::default(), plugins }
    }

    // Promises: METRIC-7
    #[test]
    fn processor_time_only_grows() {
        let mut sums = Sums::default();
        let us = Duration::from_micros;
        assert_eq!(
            sums.add(looked(&[("a", 0, 1, 100), ("a", 1, 1, 50)])).plugin("a"),
            Some((us(150), 20, 4))
        );
        // The first was restarted; the second one's tree lost a process that was not waited for.
        let readout = sums.add(looked(&[("a", 0, 2, 30), ("a", 1, 1, 20)]));
        assert_eq!(readout.plugin("a"), Some((us(180), 20, 4)));
        assert_eq!(readout.instance("a", 0).unwrap().cpu_us, 30);
        assert_eq!(sums.add(looked(&[("b", 0, 1, 1)])).plugin("a"), None);
        assert!(sums.last.len() == 1 && sums.cpu.len() == 1, "what is gone is forgotten");
    }
}
