//! Resource limits of a plugin, as written in the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_jail::Limits;

use crate::document::Findings;
use crate::document::origin::KeyPath;
use crate::units::ByteSize;

/// The smallest stack. The kernel puts arguments and environment there and reserves 128 KiB for them; a
/// program needs as much again before its own code runs.
const MIN_STACK: ByteSize = ByteSize::kib(256);

/// The smallest memory limit of a whole plugin: no runtime starts with less.
const MIN_MEMORY: ByteSize = ByteSize::mib(8);

/// Resource limits of a plugin's processes; a key that is left out keeps the wider value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxLimits {
    /// Open files of one process.
    ///
    /// 1,024: what `select()` can count to, and more than a tool that serves one socket needs. Opening more
    /// fails inside the plugin.
    #[schemars(range(min = 16), extend("x-default" = "1024"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nofile: Option<u64>,
    /// Processes and threads of the plugin's uid.
    ///
    /// 256: room for a runtime's thread pools, none for a fork bomb. Starting more fails inside the plugin.
    /// Enforced only where the plugin has a uid of its own, because the kernel counts by uid, or a cgroup.
    #[schemars(range(min = 1), extend("x-default" = "256"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nproc: Option<u64>,
    /// The largest file it may write.
    ///
    /// 1 GiB. Writing beyond it fails inside the plugin.
    #[schemars(extend("x-default" = "1GiB"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fsize_bytes: Option<ByteSize>,
    /// Memory it may lock.
    ///
    /// 64 KiB: enough for a key, too little to starve the machine.
    #[schemars(extend("x-default" = "64KiB"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memlock_bytes: Option<ByteSize>,
    /// Data segment and private memory of one process, touched or not.
    ///
    /// 4 GiB: four times what all of its processes may touch together, because runtimes with a garbage
    /// collector reserve more than they use. Asking for more fails inside the plugin.
    #[schemars(extend("x-default" = "4GiB"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<ByteSize>,
    /// The main thread's stack.
    ///
    /// 8 MiB: what Linux gives everybody. A program that needs more is killed by SIGSEGV.
    #[schemars(extend("x-default" = "8MiB"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_bytes: Option<ByteSize>,
    /// Address space of one process.
    ///
    /// Unlimited unless set, because Go, Java and Node reserve far more than they ever use. Asking for more
    /// fails inside the plugin.
    #[schemars(extend("x-default" = "unlimited"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_bytes: Option<ByteSize>,
    /// Seconds of CPU time of one process, after which it is killed.
    ///
    /// Unlimited unless set, because a plugin runs for weeks.
    #[schemars(range(min = 1), extend("x-default" = "unlimited"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Memory of all its processes together, files in its private directory among them.
    ///
    /// 1 GiB. A plugin that takes more is killed and counts as dead of memory. Enforced by a cgroup; without
    /// one by a watch that looks now and then, which the plugin's report says.
    #[schemars(extend("x-default" = "1GiB"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<ByteSize>,
    /// Memory of all its processes together from which on it is slowed down.
    ///
    /// Off unless set: a process that runs away then crawls from here to `memory_bytes` instead of being
    /// killed. For plugins that read many files, whose memory can be had again. Enforced only by a cgroup.
    #[schemars(extend("x-default" = "off"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_high_bytes: Option<ByteSize>,
    /// CPU time of all its processes together, in percent of one core.
    ///
    /// Unlimited unless set: on an idle machine a plugin may as well use what there is, and `nice` lets
    /// others go first. Enforced only by a cgroup.
    #[schemars(range(min = 1, max = 100_000), extend("x-default" = "unlimited"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
    /// How much it yields to others when cores are scarce, as in nice(1).
    ///
    /// 5: the supervisor and the host's own work go first, and a busy plugin still moves.
    #[schemars(range(max = 19), extend("x-default" = "5"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<u8>,
}

impl SandboxLimits {
    /// These limits where they are set, otherwise the wider ones.
    #[must_use]
    pub fn with_defaults(&self, wider: Limits) -> Limits {
        let bytes = |own: Option<ByteSize>, wider: u64| own.map_or(wider, ByteSize::get);
        let optional = |own: Option<ByteSize>, wider: Option<u64>| own.map(ByteSize::get).or(wider);
        Limits {
            nofile: self.nofile.unwrap_or(wider.nofile),
            nproc: self.nproc.unwrap_or(wider.nproc),
            fsize_bytes: bytes(self.fsize_bytes, wider.fsize_bytes),
            memlock_bytes: bytes(self.memlock_bytes, wider.memlock_bytes),
            data_bytes: optional(self.data_bytes, wider.data_bytes),
            core_bytes: wider.core_bytes,
            stack_bytes: bytes(self.stack_bytes, wider.stack_bytes),
            as_bytes: optional(self.as_bytes, wider.as_bytes),
            cpu_seconds: self.cpu_seconds.or(wider.cpu_seconds),
            memory_bytes: bytes(self.memory_bytes, wider.memory_bytes),
            memory_high_bytes: optional(self.memory_high_bytes, wider.memory_high_bytes),
            cpu_percent: self.cpu_percent.or(wider.cpu_percent),
            nice: self.nice.unwrap_or(wider.nice),
        }
    }

    /// Checks that a program can run within these limits.
    pub fn check(&self, path: &KeyPath, found: &mut Findings<'_>) {
        for (name, size) in [("data_bytes", self.data_bytes), ("as_bytes", self.as_bytes)] {
            if let Some(size) = size {
                found.check_nonzero_size(size, &path.key(name));
            }
        }
        let least =
            [("stack_bytes", self.stack_bytes, MIN_STACK), ("memory_bytes", self.memory_bytes, MIN_MEMORY)];
        for (name, size, least) in least {
            if let Some(size) = size
                && size < least
            {
                let message = format!("{size} is too little for any program to start");
                found.problem(&path.key(name), message, &format!("write at least {least}"));
            }
        }
    }
}
