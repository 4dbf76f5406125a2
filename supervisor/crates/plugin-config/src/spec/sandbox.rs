//! The jail of one plugin: what it may use of the host, and how much.

use std::path::PathBuf;

use super::files::SandboxFs;
use super::network::{NetworkAccess, SandboxPorts};

/// Jail settings of one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    /// What happens if a protection cannot be applied.
    pub mode: talon_jail::Mode,
    /// Resource limits.
    pub limits: talon_jail::Limits,
    /// Allowed system calls: a built-in profile, a file's name in `profile_dir`, or its absolute path.
    pub profile: String,
    /// The directory of profiles that are not built in. Only the operator sets it.
    pub profile_dir: Option<PathBuf>,
    /// Which network it can reach.
    pub network: NetworkAccess,
    /// Its TCP ports, with [`NetworkAccess::Full`].
    pub ports: SandboxPorts,
    /// `host:port`, or `*.domain:port`, that it may connect to with [`NetworkAccess::Proxy`].
    pub allow: Vec<String>,
    /// A file of certificates that it trusts in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The host files it sees in addition to the system's own.
    pub fs: SandboxFs,
    /// The most bytes it may write into its private directory, which includes `/tmp` and `/dev/shm`.
    pub tmp_bytes: u64,
    /// Whether files it writes there may be executed.
    pub tmp_exec: bool,
}

impl SandboxSettings {
    /// What it may use of the host in addition to what every plugin may, one grant each, for people. Empty
    /// without a jail, where it may use everything that its uid may.
    #[must_use]
    pub fn grants(&self) -> Vec<String> {
        if self.mode == talon_jail::Mode::Off {
            return Vec::new();
        }
        let mut grants = Vec::new();
        match self.network {
            NetworkAccess::None | NetworkAccess::Loopback => {}
            NetworkAccess::Proxy => grants.extend(self.allow.iter().map(|place| format!("allow {place}"))),
            NetworkAccess::Full => {
                let lists = [("connect", &self.ports.connect), ("bind", &self.ports.bind)];
                grants.extend(lists.into_iter().map(|(name, ports)| match ports.as_deref() {
                    None => format!("ports.{name} any"),
                    Some([]) => format!("ports.{name} none"),
                    Some(ports) => {
                        let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
                        format!("ports.{name} {}", ports.join(", "))
                    }
                }));
            }
        }
        grants.extend(self.ca_file.iter().map(|path| format!("ca_file {}", path.display())));
        for (name, list) in self.fs.lists() {
            grants.extend(list.into_iter().flatten().map(|path| format!("fs.{name} {}", path.display())));
        }
        if self.tmp_exec {
            grants.push("tmp_exec".to_owned());
        }
        grants
    }
}

/// The profile of plugins without a profile setting.
pub const DEFAULT_PROFILE: &str = "strict";

/// 64 MiB: enough for what a tool unpacks or compiles for an answer, and little enough that a hundred plugins
/// which fill theirs do not fill the machine's memory, where it is stored.
pub const DEFAULT_TMP_BYTES: u64 = 64 << 20;

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            mode: talon_jail::Mode::Enforce,
            limits: talon_jail::Limits::default(),
            profile: DEFAULT_PROFILE.to_owned(),
            profile_dir: None,
            network: NetworkAccess::None,
            ports: SandboxPorts::default(),
            allow: Vec::new(),
            ca_file: None,
            fs: SandboxFs::default(),
            tmp_bytes: DEFAULT_TMP_BYTES,
            tmp_exec: false,
        }
    }
}
