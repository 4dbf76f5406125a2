//! `state`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_extensions::{Entry, Role};
use talon_plugin_config::units::ByteSize;

use crate::config::secret::Secret;

/// What must survive a restart: the plugins' own key-values, which uid each plugin has, and the agent's
/// sessions and memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// Where it is stored.
    ///
    /// Below it, `state/` belongs to the service that stores the plugins' key-values and `agent/` to the
    /// agent, each under a separate uid. A directory that others may read or write is refused.
    #[schemars(
        extend("format" = "path"),
        extend("x-default" = "`$OPENTALON_DATA_DIR`, else `$STATE_DIRECTORY`, else `/var/lib/talon` (root) or `~/.talon`"),
        example = &"/var/lib/talon"
    )]
    pub data_dir: PathBuf,
    /// What keeps it.
    pub engine: Engine,
    /// The PostgreSQL server and database, as `postgresql://user:password@host/database`. Needed with
    /// `engine: postgres`.
    ///
    /// Never shown by `talon config show` nor logged. `sslmode=verify-full` in it, or `require`, asks for TLS
    /// with a certificate for that host, from who the system trusts or from who is in
    /// `sslrootcert=/absolute/file.pem`. Without, a server on another machine is refused.
    #[schemars(example = &"${TALON_STATE_URL}")]
    #[serde(default)]
    pub url: Option<Secret>,
    /// The same for the agent's sessions and memory, if they are to use a separate database or role.
    /// Otherwise `url`.
    #[serde(default)]
    pub agent_url: Option<Secret>,
    /// What keeps the plugins' key-values, if it is not `engine`.
    ///
    /// The agent's sessions and memory stay in `engine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins: Option<PluginStorage>,
    /// How large the SQLite file of the plugins' key-values may become.
    ///
    /// As large as the disk unless set. Beyond it, writes are refused and reads go on.
    #[serde(default)]
    pub max_bytes: Option<ByteSize>,
    /// What each plugin may keep; `state_quota` of a plugin changes it for that one.
    pub quota: Quota,
    /// The program that keeps the plugins' key-values.
    ///
    /// Looked for beside `talon` itself, then in `../libexec/talon` and `../lib/talon` from there.
    #[schemars(extend("format" = "path"), example = &"/usr/libexec/talon/talon-state")]
    #[serde(default)]
    pub program: Option<PathBuf>,
}

/// What keeps the plugins' key-values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginStorage {
    /// What keeps them.
    pub engine: PluginStorageEngine,
    /// With `engine: plugin`, the action, as `plugin.action`. It has to declare the role `storage_backend`.
    ///
    /// That plugin sees and can change the state of every plugin. It is started first, and has no state of its own. Values have at
    /// most 512 KiB, half of what a database takes. Needs a restart to change.
    #[schemars(example = &"valkey.store")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// What keeps the plugins' key-values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PluginStorageEngine {
    /// A file below `state.data_dir`.
    Sqlite,
    /// The PostgreSQL server of `state.url`.
    Postgres,
    /// An action of a plugin, such as `valkey.store`.
    Plugin,
}

/// What keeps state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// A file below `data_dir`.
    #[default]
    Sqlite,
    /// A PostgreSQL server, which several machines can share.
    Postgres,
    /// Nothing: plugins get no state, and `TALON_STATE_SOCKET` is not set.
    Off,
}

/// What a plugin may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quota {
    /// Bytes of keys and values together.
    ///
    /// 64 MiB: what a tool remembers is state, not files. A write beyond it is refused, and says how much is
    /// used.
    pub bytes: ByteSize,
    /// Keys.
    ///
    /// 100,000, which can still be listed in seconds.
    #[schemars(range(min = 1))]
    pub keys: u64,
}

/// What one plugin may keep, where it differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QuotaOverride {
    /// Bytes of keys and values together; otherwise `state.quota.bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteSize>,
    /// Keys; otherwise `state.quota.keys`.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
}

impl State {
    /// The built-in defaults.
    pub(crate) fn in_dir(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            engine: Engine::default(),
            url: None,
            agent_url: None,
            plugins: None,
            max_bytes: None,
            quota: Quota::default(),
            program: None,
        }
    }
}

impl State {
    /// What keeps the plugins' key-values, if it is a database or nothing; `None` if a plugin does.
    #[must_use]
    pub fn plugins_database(&self) -> Option<Engine> {
        match self.plugins.as_ref().map(|plugins| plugins.engine) {
            None => Some(self.engine),
            Some(PluginStorageEngine::Sqlite) => Some(Engine::Sqlite),
            Some(PluginStorageEngine::Postgres) => Some(Engine::Postgres),
            Some(PluginStorageEngine::Plugin) => None,
        }
    }

    /// The action that keeps the plugins' key-values, as an entry of the role `storage_backend`.
    #[must_use]
    pub fn storage_backend(&self) -> Option<Entry<'_>> {
        let plugins = self.plugins.as_ref().filter(|kept| kept.engine == PluginStorageEngine::Plugin)?;
        let action = plugins.action.as_deref()?;
        Some(Entry { role: Role::StorageBackend, index: 0, name: action, action, args: None })
    }
}

impl Default for Quota {
    fn default() -> Self {
        Self { bytes: ByteSize::mib(64), keys: 100_000 }
    }
}

impl Quota {
    /// The quota of a plugin with an override.
    #[must_use]
    pub fn with(self, own: QuotaOverride) -> Self {
        Self { bytes: own.bytes.unwrap_or(self.bytes), keys: own.keys.unwrap_or(self.keys) }
    }
}
