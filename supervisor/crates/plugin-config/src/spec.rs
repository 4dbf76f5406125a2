//! The settings of one plugin, from the operator and the plugin's own manifest: the input of discovery's
//! checks and of every start.

mod bridges;
mod files;
mod foreign_service;
mod network;
mod sandbox;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::PluginName;

pub use bridges::Bridges;
pub use files::SandboxFs;
pub use foreign_service::ForeignService;
pub use network::{NetworkAccess, SandboxPorts};
pub use sandbox::{DEFAULT_PROFILE, DEFAULT_TMP_BYTES, SandboxSettings};

/// The manifest's file name. It belongs neither to the plugin's view nor to its digest, because it may hold
/// the digest.
pub const MANIFEST_FILE: &str = "plugin.yaml";

/// The most connections to one process that may be asked for.
pub const MAX_CONNECTIONS: u32 = 16;
/// The most connections to one process unless its `connections` says otherwise. A second one is opened only
/// when many calls are in flight, so that an idle plugin holds one. Measured: more than 4 gain nothing.
pub const DEFAULT_CONNECTIONS: u32 = 4;
/// The smallest limit on a message: below it, Capabilities would not fit.
pub const MIN_MESSAGE_BYTES: usize = 64 << 10;
/// The largest limit on a message. gRPC's length field ends at 4 GiB; half of it is more than anything should
/// buffer.
pub const MAX_MESSAGE_BYTES: usize = 2 << 30;

/// The most instances of one plugin; more than the cores of a large machine gain nothing.
pub const MAX_INSTANCES: u32 = 64;

/// Where a `command` without a slash is searched for if no such file lies beside it. Fixed instead of
/// `$PATH`, so that the environment of the supervisor's caller does not choose the program.
pub const SYSTEM_PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Everything needed to run one plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginSpec {
    /// Its configured name, by which calls are routed.
    pub name: PluginName,
    /// Where it was found, for messages: a path, or a key of the config file.
    pub source: String,
    /// The program: a native binary or script, absolute.
    pub program: PathBuf,
    /// For a directory plugin: the directory that its read-only view copies.
    pub directory: Option<PathBuf>,
    /// Arguments after the program's own name.
    pub args: Vec<String>,
    /// Environment on top of the allow-list.
    pub env: BTreeMap<String, String>,
    /// The dialect of its handshake; `Auto` detects it by the line's second field.
    pub dialect: Dialect,
    /// The object passed to Init.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// The digest the program must have, lower-case hex.
    pub sha256: Option<String>,
    /// The magic cookie of go-plugin's handshake.
    pub cookie: Cookie,
    /// go-plugin application protocol versions offered, the best last.
    pub app_versions: Vec<u32>,
    /// The full name of the gRPC service that serves `PluginService`'s methods.
    pub service: String,
    /// What describes its service, if that is not `PluginService` and a bridge translates it.
    pub foreign_service: Option<ForeignService>,
    /// Whether its connections are encrypted.
    pub tls: Tls,
    /// Where its MCP server is, if that is reached over HTTP instead of being started.
    pub url: Option<String>,
    /// The programs that translate foreign protocols.
    pub bridges: Bridges,
    /// What happens to actions that are declared differently from how they were approved.
    pub changed_tools: ChangedTools,
    /// Whether it is replaced when its file or directory changes.
    pub watch: bool,
    /// Whether the handshake may name a TCP address (loopback only).
    pub allow_tcp: bool,
    /// How many processes share its calls.
    pub instances: u32,
    /// Start, health check and restart settings.
    pub lifecycle: LifecycleSettings,
    /// Jail settings.
    pub sandbox: SandboxSettings,
    /// The hard limit on one message from the plugin, in bytes; a larger one fails the call.
    pub max_message_bytes: usize,
    /// The most connections per instance; the second is opened when calls pile up on the first.
    pub connections: u32,
    /// Whether it is started with the supervisor.
    pub enabled: bool,
    /// Whether it has a socket for completions of language models.
    pub models: bool,
    /// Settings of its calls; only passed through, to the code that builds the guard stack.
    pub calls: CallSettings,
}

impl PluginSpec {
    /// The names of the settings that differ in another spec of the plugin, for people.
    #[must_use]
    pub fn changed_settings(&self, other: &Self) -> Vec<&'static str> {
        // Destructured completely, so that adding a field to a spec does not compile without a decision here.
        let Self {
            name: _,
            source,
            program,
            directory,
            args,
            env,
            dialect,
            config,
            sha256,
            cookie,
            app_versions,
            service,
            foreign_service,
            tls,
            url,
            bridges,
            changed_tools,
            watch,
            allow_tcp,
            instances,
            lifecycle,
            sandbox,
            max_message_bytes,
            connections,
            enabled,
            models,
            calls,
        } = self;
        let same = [
            ("source", *source == other.source),
            ("command", *program == other.program && *directory == other.directory),
            ("args", *args == other.args),
            ("env", *env == other.env),
            ("dialect", *dialect == other.dialect && *service == other.service && *tls == other.tls),
            ("descriptor", *foreign_service == other.foreign_service),
            ("config", *config == other.config),
            ("sha256", *sha256 == other.sha256),
            ("handshake", *cookie == other.cookie && *app_versions == other.app_versions),
            ("url", *url == other.url),
            ("bridge", *bridges == other.bridges),
            ("changed_tools", *changed_tools == other.changed_tools),
            ("watch", *watch == other.watch),
            ("allow_tcp", *allow_tcp == other.allow_tcp),
            ("instances", *instances == other.instances),
            ("lifecycle", *lifecycle == other.lifecycle),
            ("sandbox", *sandbox == other.sandbox),
            ("max_message_bytes", *max_message_bytes == other.max_message_bytes),
            ("connections", *connections == other.connections),
            ("enabled", *enabled == other.enabled),
            ("models", *models == other.models),
            ("limits of calls", *calls == other.calls),
        ];
        same.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }

    /// Whether both specs start the same process: they differ at most in settings that a running process does
    /// not see, which can be changed without a restart.
    #[must_use]
    pub fn runs_same_process(&self, other: &Self) -> bool {
        let process_alone = |spec: &Self| Self {
            source: String::new(),
            calls: CallSettings::default(),
            changed_tools: ChangedTools::default(),
            watch: false,
            ..spec.clone()
        };
        process_alone(self) == process_alone(other)
    }
}

/// Settings for a plugin's calls, from the manifest and the operator. `None`: the supervisor's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallSettings {
    /// Timeout of one call.
    pub timeout: Option<Duration>,
    /// Timeout of one call of the named action; takes precedence over `timeout`.
    pub action_timeouts: BTreeMap<String, Duration>,
    /// How many bytes of one answer a model receives.
    pub max_response_bytes: Option<usize>,
    /// The largest structured content of one answer, in bytes of JSON.
    pub max_structured_bytes: Option<usize>,
    /// The largest total size of one call's arguments, in bytes.
    pub max_argument_bytes: Option<usize>,
    /// Concurrent calls.
    pub concurrency: Option<usize>,
    /// Calls that wait for a free slot.
    pub queue: Option<usize>,
}

/// The gRPC service that a plugin serves unless configured otherwise.
pub const DEFAULT_SERVICE: &str = "opentalon.plugin.v1.PluginService";

/// Whether the connections to a plugin are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    /// Not encrypted: only the plugin can reach the socket, and its listener is checked.
    #[default]
    Off,
    /// go-plugin's AutoMTLS: both sides create a certificate for one process, and each accepts only the
    /// other's. A plugin that does not support it is refused.
    AutoMtls,
}

/// What happens to an action whose declaration (name, description, parameters, hints) changed after it was
/// approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangedTools {
    /// It is reported: an event, a log line, `talon status` and `talon plugin show`.
    #[default]
    Report,
    /// It is reported, and the action is refused until `talon plugin approve`.
    Block,
}

/// The dialect of a plugin's handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Detected from the handshake line.
    #[default]
    Auto,
    /// HashiCorp go-plugin's, which `talon-sdk` speaks too: `1|APP|unix|ADDR|grpc[|…]`.
    GoPlugin,
    /// OpenTalon's: `1|unix|ADDR[|HTTP]`.
    #[serde(rename = "opentalon")]
    OpenTalon,
    /// The oldest OpenTalon plugins (v0.0.1): after the line they speak 4-byte lengths and JSON, which a
    /// bridge translates. With `auto` and `opentalon` they are detected by their answer, then started again
    /// behind the bridge.
    #[serde(rename = "opentalon-v0")]
    OpenTalonV0,
    /// The Model Context Protocol: the program is an MCP server on standard input and output. A bridge in the
    /// same jail translates it.
    Mcp,
}

/// The magic cookie of go-plugin's handshake. It tells a program that it was started by a host; it is not a
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cookie {
    /// The environment variable.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl Dialect {
    /// The name used in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::GoPlugin => "go-plugin",
            Self::OpenTalon => "opentalon",
            Self::OpenTalonV0 => "opentalon-v0",
            Self::Mcp => "mcp",
        }
    }
}

impl Default for Cookie {
    fn default() -> Self {
        Self { key: "TALON_PLUGIN_MAGIC_COOKIE".to_owned(), value: "d3a7c1f0-talon-plugin".to_owned() }
    }
}

/// Start, health check and restart settings of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct LifecycleSettings {
    /// From the start of the process until its Capabilities were read.
    pub start_timeout: Duration,
    /// Between health checks.
    pub health_check_interval: Duration,
    /// For one health check.
    pub health_check_timeout: Duration,
    /// How many failed checks in a row end a plugin.
    pub health_failure_threshold: u32,
    /// Whether a plugin that died is started again.
    pub restart_on_failure: bool,
    /// Deaths within `restart_window` after which it is `Failed`.
    pub max_restarts: u32,
    /// The window in which the restart counter counts deaths.
    pub restart_window: Duration,
    /// The first backoff; doubles with each death in the window, with jitter.
    pub backoff_initial: Duration,
    /// The longest backoff.
    pub backoff_max: Duration,
    /// How long calls in flight may take once it drains; then the same time again for its exit.
    pub grace_period: Duration,
    /// How long a call waits for a plugin that is restarting.
    pub ready_wait: Duration,
    /// How long after a call's deadline the plugin may take to end it before the plugin is killed. `None`:
    /// overdue calls are not watched, and a call is cancelled on the wire at its deadline.
    pub kill_overdue_after: Option<Duration>,
}

impl Default for LifecycleSettings {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(30),
            health_check_interval: Duration::from_secs(30),
            health_check_timeout: Duration::from_secs(5),
            health_failure_threshold: 3,
            restart_on_failure: true,
            max_restarts: 3,
            restart_window: Duration::from_secs(300),
            backoff_initial: Duration::from_millis(200),
            backoff_max: Duration::from_secs(30),
            grace_period: Duration::from_secs(10),
            ready_wait: Duration::from_secs(10),
            kill_overdue_after: None,
        }
    }
}
