//! A plugin's jail, as written in the configuration.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_jail::Mode;

use super::files::check_grants;
use super::network::check_allow_list;
use crate::document::Findings;
use crate::document::origin::KeyPath;
use crate::spec::{NetworkAccess, SandboxFs, SandboxPorts, SandboxSettings};
use crate::units::ByteSize;

// A constant, because `schemars` parses array expressions only where another crate enables that feature of
// `syn`.
const ALLOW_EXAMPLE: [&str; 1] = ["api.example.org:443"];

/// The longest name of a profile: the longest file name.
const MAX_PROFILE_NAME_BYTES: usize = 255;

/// One plugin's jail. A `plugin.yaml` may ask for more protection, never for less: what gives more than the
/// operator's word is refused until the operator says here whether it may.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginSandbox {
    /// As `sandbox.mode`.
    ///
    /// A `plugin.yaml` may ask for more protection, never for less: one that asks for less than
    /// `sandbox.mode` is refused until the operator sets the mode here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SandboxMode>,
    /// As `sandbox.profile`.
    ///
    /// A `plugin.yaml` that names another than the operator's is refused until the operator names it here.
    #[schemars(example = &"ports")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// As `sandbox.network`.
    ///
    /// A `plugin.yaml` that asks for more than `sandbox.network` is refused until the operator grants it
    /// here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkAccess>,
    /// As `sandbox.ports`. Each list that is left out keeps the wider one.
    #[serde(skip_serializing_if = "SandboxPorts::are_any")]
    pub ports: SandboxPorts,
    /// As `sandbox.allow`. The whole list replaces the wider one.
    #[schemars(example = ALLOW_EXAMPLE)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// As `sandbox.ca_file`.
    ///
    /// A `plugin.yaml` that names another than the operator's is refused until the operator names it here.
    #[schemars(extend("format" = "path"), example = &"/etc/talon/company-ca.pem")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// As `sandbox.fs`. Each list that is left out keeps the wider one.
    ///
    /// A `plugin.yaml` that names what `sandbox.fs` does not grant is refused until the operator grants it
    /// here.
    #[serde(skip_serializing_if = "SandboxFs::is_silent")]
    pub fs: SandboxFs,
    /// As `sandbox.tmp_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_bytes: Option<ByteSize>,
    /// As `sandbox.tmp_exec`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_exec: Option<bool>,
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

impl SandboxMode {
    /// The name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
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

impl PluginSandbox {
    /// Applies these settings to the wider ones.
    pub fn apply(&self, sandbox: &mut SandboxSettings) {
        if let Some(mode) = self.mode {
            sandbox.mode = mode.into();
        }
        if let Some(profile) = &self.profile {
            sandbox.profile.clone_from(profile);
        }
        sandbox.network = self.network.unwrap_or(sandbox.network);
        sandbox.ports = self.ports.with_defaults(&sandbox.ports);
        if let Some(allow) = &self.allow {
            sandbox.allow.clone_from(allow);
        }
        if let Some(ca_file) = &self.ca_file {
            sandbox.ca_file = Some(ca_file.clone());
        }
        sandbox.fs = self.fs.with_defaults(&sandbox.fs);
        sandbox.tmp_bytes = self.tmp_bytes.map_or(sandbox.tmp_bytes, ByteSize::get);
        sandbox.tmp_exec = self.tmp_exec.unwrap_or(sandbox.tmp_exec);
    }

    /// Checks that a jail can be built from these settings.
    pub fn check(&self, path: &KeyPath, found: &mut Findings<'_>) {
        if let Some(mode) = self.mode {
            mode.check(path, found);
        }
        if let Some(profile) = &self.profile {
            check_profile(profile, &path.key("profile"), found);
        }
        if let Some(size) = self.tmp_bytes {
            found.check_nonzero_size(size, &path.key("tmp_bytes"));
        }
        check_allow_list(self.allow.as_deref().unwrap_or_default(), &path.key("allow"), found);
        if self.ca_file.as_ref().is_some_and(|file| !file.is_absolute()) {
            found.problem(&path.key("ca_file"), "is no absolute path", "write the whole path");
        }
        check_grants(&self.fs, &path.key("fs"), found);
        // Either would have no effect, which an operator does not expect.
        if !self.ports.are_any() && self.network.is_some_and(|network| network != NetworkAccess::Full) {
            let help = "set network: full, or remove the ports";
            found.problem(&path.key("ports"), "has no effect without network: full", help);
        }
        if self.allow.as_ref().is_some_and(|allow| !allow.is_empty())
            && self.network.is_some_and(|network| network != NetworkAccess::Proxy)
        {
            let help = "set network: proxy, or remove the list";
            found.problem(&path.key("allow"), "has no effect without network: proxy", help);
        }
    }
}

/// A profile is given by its name, or by the absolute path of its file.
fn check_profile(profile: &str, path: &KeyPath, found: &mut Findings<'_>) {
    let is_name = !profile.is_empty()
        && profile.len() <= MAX_PROFILE_NAME_BYTES
        && !profile.starts_with('.')
        && !profile.contains(['/', '\0']);
    let is_file = Path::new(profile).is_absolute() && !profile.contains('\0');
    if !is_name && !is_file {
        let help = "write strict, the name of a file in sandbox.profile_dir, or an absolute path";
        found.problem(path, "names no profile", help);
    }
}
