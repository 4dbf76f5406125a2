//! The operator's settings: for all plugins, and for single ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::entry::PluginSettings;
use crate::name::PluginName;
use crate::spec::Bridges;
use crate::spec::{
    CallSettings, ChangedTools, Cookie, DEFAULT_CONNECTIONS, DEFAULT_SERVICE, Dialect, LifecycleSettings,
    PluginSpec, SandboxSettings, Tls,
};

/// The transport's hard limit on one message from a plugin. 8 MiB leaves room for answers that are truncated
/// later, and bounds the memory of one call.
pub const DEFAULT_MAX_MESSAGE_BYTES: usize = 8 << 20;

/// The defaults for every plugin, and the operator's overrides for single ones.
#[derive(Debug, Clone)]
pub struct SpecDefaults {
    /// Start, health check, restart and stop settings.
    pub lifecycle: LifecycleSettings,
    /// Jail settings. A manifest may request a stricter jail, never a looser one.
    pub sandbox: SandboxSettings,
    /// The hard limit on one message, in bytes.
    pub max_message_bytes: usize,
    /// go-plugin's magic cookie.
    pub cookie: Cookie,
    /// go-plugin application protocol versions to offer, the preferred one last.
    pub app_versions: Vec<u32>,
    /// The number of processes of each plugin.
    pub instances: u32,
    /// The most connections to each process.
    pub connections: u32,
    /// Whether plugins start with the supervisor.
    pub enabled: bool,
    /// Whether plugins are replaced when their files change.
    pub watch: bool,
    /// The programs that translate foreign protocols.
    pub bridges: Bridges,
    /// The plugins that have a socket for completions of language models.
    pub granted_models: BTreeSet<String>,
    /// The operator's settings for single plugins, by name. They override the plugins' own settings.
    pub overrides: BTreeMap<String, PluginSettings>,
}

impl Default for SpecDefaults {
    fn default() -> Self {
        Self {
            lifecycle: LifecycleSettings::default(),
            sandbox: SandboxSettings::default(),
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
            cookie: Cookie::default(),
            app_versions: vec![1],
            instances: 1,
            connections: DEFAULT_CONNECTIONS,
            enabled: true,
            watch: false,
            bridges: Bridges::default(),
            granted_models: BTreeSet::new(),
            overrides: BTreeMap::new(),
        }
    }
}

impl SpecDefaults {
    /// The spec of a plugin of which only the program is known. Ignores the overrides.
    #[must_use]
    pub fn spec(
        &self,
        name: PluginName,
        source: impl Into<String>,
        program: impl Into<PathBuf>,
    ) -> PluginSpec {
        PluginSpec {
            models: self.granted_models.contains(name.as_str()),
            name,
            source: source.into(),
            program: program.into(),
            directory: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            dialect: Dialect::Auto,
            config: serde_json::Map::new(),
            sha256: None,
            cookie: self.cookie.clone(),
            app_versions: self.app_versions.clone(),
            service: DEFAULT_SERVICE.to_owned(),
            foreign_service: None,
            tls: Tls::default(),
            url: None,
            bridges: self.bridges.clone(),
            changed_tools: ChangedTools::default(),
            watch: self.watch,
            allow_tcp: false,
            instances: self.instances,
            lifecycle: self.lifecycle.clone(),
            sandbox: self.sandbox.clone(),
            max_message_bytes: self.max_message_bytes,
            connections: self.connections,
            enabled: self.enabled,
            calls: CallSettings::default(),
        }
    }
}
