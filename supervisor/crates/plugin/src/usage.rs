//! What a plugin's processes use, as far as this crate can tell without looking at other processes.

use std::time::Duration;

/// What one process and all that it started use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As their cgroup counts it, with what has ended.
    Cgroup {
        /// Processor time.
        cpu: Duration,
        /// Memory, files in memory included.
        memory_bytes: u64,
        /// Processes and threads.
        processes: u64,
    },
    /// There is no cgroup: it is what this process and those below it use.
    Below {
        /// The process number.
        pid: u32,
    },
}

/// A reading of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceReading {
    /// Which instance.
    pub index: u32,
    /// Which of its processes.
    pub generation: u64,
    /// What that uses.
    pub reading: Reading,
}
