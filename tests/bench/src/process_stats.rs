//! The resource usage of a process, from the kernel.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

fn proc_dir(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Its memory in mebibytes: its private memory and its share of what it shares with others (PSS).
///
/// # Errors
/// If it is gone, or we may not read it.
pub fn memory_mib(pid: u32) -> Result<f64> {
    rolled_up_mib(pid, "Pss:")
}

/// All of its memory that is in RAM, in mebibytes (RSS): also what it shares with others.
///
/// # Errors
/// If it is gone, or we may not read it.
pub fn resident_mib(pid: u32) -> Result<f64> {
    rolled_up_mib(pid, "Rss:")
}

/// The anonymous part of its memory, which is where a leak shows. File-backed pages, above all the program's text,
/// are left out: they come in when they are first used, and a process's share of them grows when other users
/// end.
///
/// # Errors
/// If it is gone, or we may not read it.
pub fn own_memory_mib(pid: u32) -> Result<f64> {
    rolled_up_mib(pid, "Anonymous:")
}

fn rolled_up_mib(pid: u32, field: &str) -> Result<f64> {
    let path = proc_dir(pid).join("smaps_rollup");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let line = line.with_context(|| format!("the kernel tells no {field}"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib / 1024.0)
}

/// Its name in the kernel: at most 15 bytes.
#[must_use]
pub fn name(pid: u32) -> Option<String> {
    std::fs::read_to_string(proc_dir(pid).join("comm")).ok().map(|name| name.trim_end().to_owned())
}

/// How many descriptors it has open.
///
/// # Errors
/// If it is gone, or we may not read it.
pub fn descriptors(pid: u32) -> Result<usize> {
    count(&proc_dir(pid).join("fd"))
}

/// How many threads it has.
///
/// # Errors
/// If it is gone.
pub fn threads(pid: u32) -> Result<usize> {
    count(&proc_dir(pid).join("task"))
}

fn count(directory: &Path) -> Result<usize> {
    Ok(std::fs::read_dir(directory).with_context(|| directory.display().to_string())?.count())
}

/// The CPU time of each of its threads, in nanoseconds: two orders finer than the unit of `/proc/PID/stat`,
/// which an idle process takes minutes to change.
#[derive(Debug, Clone)]
pub struct CpuTime(BTreeMap<u32, u64>);

impl CpuTime {
    /// The CPU time up to now.
    ///
    /// # Errors
    /// If it is gone, or the kernel does not count (`CONFIG_SCHED_INFO`).
    pub fn of(pid: u32) -> Result<Self> {
        let tasks = proc_dir(pid).join("task");
        let mut threads = BTreeMap::new();
        for task in std::fs::read_dir(&tasks).with_context(|| tasks.display().to_string())? {
            let task = task?;
            // A thread may end between the listing and the read.
            let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) else { continue };
            let id = task.file_name().to_string_lossy().parse()?;
            let first = text.split_whitespace().next().context("schedstat begins with a number")?;
            threads.insert(id, first.parse()?);
        }
        Ok(Self(threads))
    }

    /// The time since an earlier reading. Threads that ended in between are not included.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Duration {
        let grown =
            self.0.iter().map(|(id, now)| now.saturating_sub(earlier.0.get(id).copied().unwrap_or(0)));
        Duration::from_nanos(grown.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_look_at_itself() {
        let pid = std::process::id();
        let (all, own) = (memory_mib(pid).expect("it is ours"), own_memory_mib(pid).expect("it is ours"));
        assert!(0.1 < own && own < all, "{own} of {all}");
        assert!(descriptors(pid).expect("it is ours") >= 3);
        assert!(threads(pid).expect("it is ours") >= 1);
        let before = CpuTime::of(pid).expect("it is ours");
        let mut value = 1_u64;
        for number in 0..10_000_000_u64 {
            value = std::hint::black_box(value.wrapping_mul(31).wrapping_add(number));
        }
        std::hint::black_box(value);
        assert!(CpuTime::of(pid).expect("it is ours").since(&before) > Duration::ZERO);
    }
}
