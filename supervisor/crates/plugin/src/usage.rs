//! Resource usage of a plugin's processes, as far as this crate can read it without looking at other
//! processes.

use std::time::Duration;

/// Resource usage of one process and everything it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As their cgroup counts it, including processes that have ended.
    Cgroup {
        /// Processor time.
        cpu: Duration,
        /// Memory, files in memory included.
        memory_bytes: u64,
        /// Processes and threads.
        processes: u64,
    },
    /// There is no cgroup: the usage of this process and its descendants has to be summed up.
    ProcessTree {
        /// The process number.
        pid: u32,
    },
}

/// A reading of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceReading {
    /// Which instance.
    pub index: u32,
    /// The generation of its process.
    pub generation: u64,
    /// The usage.
    pub reading: Reading,
}
