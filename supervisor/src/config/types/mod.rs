//! The configuration as types. Their doc comments are the reference page: the first paragraph says what a key
//! is, the next ones why its default is what it is and what happens at the limit. The settings of a single
//! plugin are in [`talon_plugin_config::entry`], because a plugin's own manifest has the same keys.

mod admin;
mod audit;
mod event_grant;
mod events;
mod frames;
mod gateway;
mod guard;
mod host;
mod log;
mod lua;
mod model_grant;
mod reload;
mod sandbox;
mod state;
mod tools;
mod traces;
mod user;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::admin::Admin;
pub use self::audit::{Audit, AuditArguments};
pub(crate) use self::event_grant::MAX_EVENTS_PER_MINUTE;
pub use self::events::Events;
pub use self::frames::Frames;
pub use self::gateway::{BehindProxy, Gateway, GatewayLimits, GatewayRouting, GatewayTls};
pub use self::guard::{Breaker, Envelope, Guard, Oversize, Pages, Quarantine};
pub use self::host::{Host, HostLimits, Origin, Peer, Role};
pub use self::log::{Log, LogFormat};
pub use self::lua::{LuaLibrary, LuaLimits, LuaScript, LuaScriptLimits, LuaScripts};
pub(crate) use self::model_grant::{MAX_ALLOWED, MAX_CALLS, MAX_CONCURRENCY};
pub use self::model_grant::{ModelGrant, OwnBudget};
pub use self::reload::Reload;
pub use self::sandbox::Sandbox;
pub use self::state::{Engine, PluginStorage, PluginStorageEngine, Quota, QuotaOverride, State};
pub use self::tools::{ConfiguredPlugin, Credential, Grants, Lifecycle, Media, Override, Tools};
pub use self::traces::Traces;
pub use self::user::User;

use talon_agent_settings::{AgentKeys, ModelKeys, OrchestratorKeys, ShadowKeys};
use talon_extensions::Extensions;

use super::environment::DefaultPaths;

/// The configuration of a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Config {
    /// Where the sockets live, and the plugins' private directories.
    ///
    /// Must be short, because a unix socket's path holds at most 107 bytes; a second supervisor on the same
    /// directory is refused.
    #[schemars(
        extend("format" = "path"),
        extend("x-default" = "`$RUNTIME_DIRECTORY`, else `/run/talon` (root), `$XDG_RUNTIME_DIR/talon` or `/tmp/talon-<uid>`"),
        example = &"/run/talon"
    )]
    pub runtime_dir: std::path::PathBuf,
    /// What stands between every plugin and its callers: one guard stack, the same for every call.
    ///
    /// These values hold for every plugin; `plugins.tools.defaults` and `plugins.tools.overrides` change some
    /// of them.
    pub guard: Guard,
    /// The jail around every plugin: what a plugin gets about which nothing else is said, and the most that
    /// its `plugin.yaml` may ask for.
    pub sandbox: Sandbox,
    /// What runs.
    pub plugins: Plugins,
    /// What must survive a restart.
    pub state: State,
    /// Who may use `host.sock`, and for what.
    ///
    /// The socket has mode 0660, and an access control list that lets the users and groups of `peers`
    /// connect. The kernel identifies clients (by uid and groups), never a field of a request. Entries of
    /// `peers` are tried from first to last; then root and the supervisor's own user are administrators, and
    /// members of `group` may call, both as persons. All others are refused.
    pub host: Host,
    /// The supervisor's own log, and its plugins' logs.
    pub log: Log,
    /// Health and metrics, for monitoring.
    pub admin: Admin,
    /// A record of every call that cannot be changed without showing.
    pub audit: Audit,
    /// What happened that an operator wants to be told of (a plugin failed, a configuration was refused), numbered and kept in
    /// `events` in `state.data_dir`.
    pub events: Events,
    /// OpenTelemetry.
    pub traces: Traces,
    /// Changes while it runs.
    pub reload: Reload,
    /// A supervisor that `talon ask` and `talon chat` start for one user.
    pub user: User,
    /// The agent, which lets a model use the plugins' actions: a separate process under a separate uid, with
    /// network access and no privileges. It reaches plugins only through the host API, as every client.
    pub agent: AgentKeys,
    /// The models that the agent uses, and their providers.
    pub models: ModelKeys,
    /// Instructions for the model.
    pub orchestrator: OrchestratorKeys,
    /// Proposals that come of watching a person's work: [the shadow loop](shadow.md). Nothing acts before that person approves
    /// it.
    pub shadow: ShadowKeys,
    /// HTTP and WebSocket for browsers, channels and programs: [the gateway](gateway.md).
    pub gateway: Gateway,
    /// Actions that extend the system, each in a role: [extensions](extensions/README.md).
    ///
    /// A plugin can only propose a role; without an entry here it plays none.
    pub extensions: Extensions,
}

/// The kinds of plugin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plugins {
    /// Tool plugins: programs that serve actions over gRPC.
    pub tools: Tools,
    /// Lua scripts that look at messages and answers: [scripts](lua.md).
    ///
    /// Not set, so none run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lua: Option<LuaScripts>,
}

impl Config {
    /// Whether the agent runs with this configuration.
    #[must_use]
    pub fn runs_agent(&self) -> bool {
        let has_work = !self.models.providers.0.is_empty()
            || !self.extensions.is_empty()
            || self.plugins.lua.is_some()
            || self.shadow.enabled
            || self.gateway.enabled;
        self.agent.enabled.runs(has_work)
    }

    /// The extensions, with what `gateway.routing` says where a channel says nothing itself.
    #[must_use]
    pub fn extensions_as_routed(&self) -> Extensions {
        let mut extensions = self.extensions.clone();
        for channel in &mut extensions.channels {
            channel.activation.get_or_insert(self.gateway.routing.activation);
            if channel.names.is_empty() {
                channel.names.clone_from(&self.gateway.routing.names);
            }
        }
        extensions
    }

    /// The built-in defaults.
    #[must_use]
    pub fn built_in(places: &DefaultPaths) -> Self {
        Self {
            runtime_dir: places.runtime_dir.path.clone(),
            guard: Guard::default(),
            sandbox: Sandbox::default(),
            plugins: Plugins::default(),
            state: State::in_dir(&places.data_dir.path),
            host: Host::default(),
            log: Log::default(),
            admin: Admin::default(),
            audit: Audit::default(),
            events: Events::default(),
            traces: Traces::default(),
            reload: Reload::default(),
            user: User::default(),
            agent: AgentKeys::default(),
            models: ModelKeys::default(),
            orchestrator: OrchestratorKeys::default(),
            shadow: ShadowKeys::default(),
            gateway: Gateway::default(),
            extensions: Extensions::default(),
        }
    }
}
