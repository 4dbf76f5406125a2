//! A plugin's jail, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_jail::{Limits, Mode};

use crate::units::ByteSize;

/// One plugin's jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginSandbox {
    /// As `sandbox.mode`.
    ///
    /// A `plugin.yaml` may ask for more protection, never for less: one that asks for less than `sandbox.mode` is
    /// refused until the operator sets the mode here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SandboxMode>,
}

/// What happens when a protection cannot be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// The plugin is not started, and its error names what is missing.
    #[default]
    Enforce,
    /// It runs without; `talon status` and the log say what is not enforced.
    BestEffort,
    /// It runs as a plain process. For debugging only.
    Off,
}

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
    /// Enforced only where the plugin has a uid of its own, because the kernel counts by uid.
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
    /// Data segment and private memory.
    ///
    /// Unlimited unless set, because runtimes with a garbage collector reserve far more than they use.
    #[schemars(extend("x-default" = "unlimited"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<ByteSize>,
}

impl SandboxMode {
    /// The word as it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::BestEffort => "best-effort",
            Self::Off => "off",
        }
    }
}

impl From<SandboxMode> for Mode {
    fn from(mode: SandboxMode) -> Self {
        match mode {
            SandboxMode::Enforce => Self::Enforce,
            SandboxMode::BestEffort => Self::BestEffort,
            SandboxMode::Off => Self::Off,
        }
    }
}

impl From<Mode> for SandboxMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Enforce => Self::Enforce,
            Mode::BestEffort => Self::BestEffort,
            Mode::Off => Self::Off,
        }
    }
}

impl SandboxLimits {
    /// These limits where something is said, and the wider ones elsewhere.
    #[must_use]
    pub fn within(&self, wider: Limits) -> Limits {
        Limits {
            nofile: self.nofile.unwrap_or(wider.nofile),
            nproc: self.nproc.unwrap_or(wider.nproc),
            fsize_bytes: self.fsize_bytes.map_or(wider.fsize_bytes, ByteSize::get),
            memlock_bytes: self.memlock_bytes.map_or(wider.memlock_bytes, ByteSize::get),
            data_bytes: self.data_bytes.map(ByteSize::get).or(wider.data_bytes),
            core_bytes: wider.core_bytes,
        }
    }
}
