//! The settings of one plugin: the keys of a `plugin.yaml`, of `plugins.tools.plugins.<name>` and of
//! `plugins.tools.overrides.<name>` in the config file, which are the same.
//!
//! The doc comments become the reference page: the first paragraph describes a key, the others explain its
//! default and what happens at the limit. Everything but the program is optional. A key that is left out
//! keeps the wider value, so that several sources can configure one plugin, each over the one before: its
//! manifest, its entry, the overrides ([`PluginEntry::apply`], [`PluginSettings::apply`]).

mod apply;
mod calls;
mod check;
mod files;
mod jail;
mod lifecycle;
mod limits;
mod network;
mod url;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::{ChangedTools, Cookie, Dialect, Tls};
use crate::units::Duration;

pub use apply::overdue_limit;
pub use calls::CallLimits;
pub use check::{MAX_CALL_TIMEOUT, check_backoff, check_call_timeout, check_health, check_variable};
pub use files::MAX_GRANTS;
pub use jail::{PluginSandbox, SandboxMode};
pub use lifecycle::LifecycleKeys;
pub use limits::SandboxLimits;
pub(crate) use url::host_port as place_of_url;

/// A plugin and its program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginEntry {
    /// The program, or in the config file also a directory with a `plugin.yaml`.
    ///
    /// In the config file a relative path starts at the file's directory; a name without a slash is looked
    /// for there, and then in `/usr/local/bin`, `/usr/bin` and `/bin`. A directory is a plugin as one in
    /// `plugin_dir` is: its `plugin.yaml` names the program, and what else the entry says wins over what
    /// stands there.
    ///
    /// In a `plugin.yaml` a relative path starts at its directory and must not lead out of it; a name without
    /// a slash is looked for there, and then in the same three places.
    ///
    /// Only a plugin with a `url` has none.
    #[schemars(extend("format" = "program"), example = &"/opt/weather/bin/weather")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<PathBuf>,
    /// Instead of a program: the address of an MCP server that is reached over HTTP (streamable HTTP). Its
    /// jail can connect to that host alone, unless `sandbox.network` says otherwise.
    ///
    /// In the config file only: a `plugin.yaml` cannot give itself a way into the network.
    #[schemars(extend("x-may-hold-secrets" = true), example = &"https://mcp.example.org/mcp")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its arguments.
    #[schemars(extend("x-may-hold-secrets" = true))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// How it shakes hands.
    #[schemars(extend("x-default" = "auto"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// The SHA-256 digest that the program must have, as 64 hexadecimal digits; for a directory that of all
    /// files in it but `plugin.yaml`, as `talon plugin show` prints it. Another program is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The magic cookie of go-plugin's handshake, where the program insists on one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<Cookie>,
    /// The go-plugin application protocol versions to offer, the best last.
    #[schemars(extend("x-default" = "[1]"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_versions: Option<Vec<u32>>,
    /// The full name of the program's gRPC service. It has `PluginService`'s methods, under a name of its own; or
    /// it is another host's service, and `descriptor` says what it has.
    #[schemars(extend("x-default" = "opentalon.plugin.v1.PluginService"), example = &"acme.tools.v1.PluginService")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The file with the descriptor of a service that is not `PluginService`, as `protoc --include_imports
    /// --descriptor_set_out` writes it; `service` names the service. Its methods become actions, which a bridge
    /// in the jail translates. At most 4 MiB.
    ///
    /// In a `plugin.yaml` a path in its directory. In the config file any file; the plugin can then read it, as
    /// if `sandbox.fs.read` named it, as far as the file's own permissions let it.
    #[schemars(extend("format" = "path"), example = &"/opt/kv/kv.pb")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<PathBuf>,
    /// With a `descriptor`: which methods are offered, and the names of their actions. Left out, all that do not
    /// stream are, under their own names.
    #[schemars(extend("x-key" = "method"), example = serde_json::json!({ "Get": "get", "Put": "put" }))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub methods: BTreeMap<String, String>,
    /// Whether the connections to it are encrypted. Off, because its socket is its own and who listens there
    /// is checked; for programs of go-plugin that insist on it.
    #[schemars(extend("x-default" = "off"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Everything that overrides may say, too.
    #[serde(flatten)]
    pub settings: PluginSettings,
}

/// What may be said about any one plugin. A key that is left out keeps the wider value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginSettings {
    /// Limits of its calls.
    #[serde(flatten)]
    pub calls: CallLimits,
    /// Whether it may listen on a TCP port of this machine instead of a unix socket. Off, because other users
    /// of the machine could then connect to it. It needs `sandbox.network: full` as well.
    ///
    /// A `plugin.yaml` that asks for it is refused until the operator says here whether it may.
    #[schemars(extend("x-default" = "false"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_tcp: Option<bool>,
    /// Whether it is replaced when its file or directory changes: the new one is started beside the old one,
    /// which goes on until the new one is ready, so that no call is lost.
    #[schemars(extend("x-default" = "as `plugins.tools.watch`"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<bool>,
    /// Whether it is started with the supervisor. Otherwise it waits for `talon plugin start`.
    #[schemars(extend("x-default" = "true"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How many processes share its calls, the least loaded first.
    #[schemars(range(min = 1, max = 64), extend("x-default" = "1"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<u32>,
    /// How many connections lead to each process at most. There is one until more than eight calls at once
    /// are under way on it; measured, nothing is gained beyond 4.
    #[schemars(range(min = 1, max = 16), extend("x-default" = "4"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// Environment variables, on top of `env_allow_list`.
    #[schemars(extend("x-may-hold-secrets" = true), example = serde_json::json!({ "TZ": "UTC" }))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The object that the plugin gets when it is initialised. Free in form; the plugin's own documentation
    /// says what it understands.
    #[schemars(extend("x-may-hold-secrets" = true), example = serde_json::json!({ "root": "/srv/code" }))]
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub config: serde_json::Map<String, serde_json::Value>,
    /// What happens to an action whose declaration changed after it was approved; the first one that is seen
    /// is approved.
    ///
    /// Descriptions are what a model chooses by, and a plugin could show harmless ones until it is trusted.
    #[schemars(extend("x-default" = "report"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_tools: Option<ChangedTools>,
    /// What differs for one of its actions, by the action's name.
    #[schemars(extend("x-key" = "action"), example = serde_json::json!({ "clone": { "timeout": "5m" } }))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, ActionOverride>,
    /// Its jail.
    pub sandbox: PluginSandbox,
    /// Its resource limits, where they differ from `sandbox.limits`. One that is left out keeps the value
    /// there.
    ///
    /// A `plugin.yaml` may lower them, never raise them: one that asks for more than `sandbox.limits` is
    /// refused until the operator sets that limit here.
    pub limits: SandboxLimits,
    /// How it lives and dies.
    #[serde(flatten)]
    pub lifecycle: LifecycleKeys,
}

/// What differs for one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ActionOverride {
    /// How long one call of it may take; wins over the plugin's timeout, in both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}
