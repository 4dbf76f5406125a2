//! `plugins.tools`: which tool plugins there are and how they live.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::DEFAULT_ENV_ALLOW_LIST;
use talon_plugin_config::entry::{self, CallLimits, PluginSettings};
use talon_plugin_config::spec::LifecycleSettings;
use talon_plugin_config::units::Duration;

use super::event_grant::EventGrant;
use super::frames::Frames;
use super::model_grant::ModelGrant;
use super::state::QuotaOverride;
use crate::config::secret::Secret;

/// Tool plugins: where they are found, how they run, and what differs for single ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tools {
    /// The directory in which plugins are looked for: every executable file is one, named after the file, and
    /// every directory with a `plugin.yaml`.
    ///
    /// Without it only the plugins under `plugins` run. A relative path starts at the config file's
    /// directory.
    #[schemars(extend("format" = "path"), example = &"./plugins")]
    #[serde(default)]
    pub plugin_dir: Option<PathBuf>,
    /// Where `talon-mcp-bridge`, `talon-framed-bridge` and `talon-service-bridge` are, which translate for plugins that speak
    /// something else than gRPC.
    ///
    /// Unless set, they are looked for beside `talon`, and in `../libexec/talon` and `../lib/talon` from
    /// there.
    #[schemars(extend("format" = "path"), example = &"/usr/libexec/talon")]
    #[serde(default)]
    pub bridge_dir: Option<PathBuf>,
    /// Whether plugins are replaced when their files change, and new ones in `plugin_dir` are registered;
    /// each plugin can differ.
    ///
    /// Off: plugins change on request only (`talon plugin reload`, `talon reload`).
    #[serde(default)]
    pub watch: bool,
    /// How plugins are started, checked, restarted and stopped.
    #[serde(flatten)]
    pub lifecycle: Lifecycle,
    /// How many plugins start at once; the others wait for their turn. A plugin's start timeout begins when
    /// its start gets its turn.
    ///
    /// Twice the cores: a start waits for the plugin's own work about half of its time, and more at once
    /// would only make each of them slower.
    #[schemars(range(min = 1, max = 10_000), extend("x-default" = "2 × cores"))]
    #[serde(default)]
    pub start_concurrency: Option<usize>,
    /// The variables that plugins get from the supervisor's own environment; `LC_*` means all that begin so.
    ///
    /// How to find programs, the language and the time zone. Everything else is withheld, because the
    /// supervisor's environment may hold secrets.
    pub env_allow_list: Vec<String>,
    /// What one connection to a plugin may bring beside the plugin's answers. A plugin that sends more has
    /// flooded: the connection is closed, its calls fail, and it is restarted as after a death.
    #[serde(default)]
    pub frames: Frames,
    /// Limits of the calls of every tool plugin, where they differ from `guard`. One that is left out keeps
    /// the value there.
    pub defaults: CallLimits,
    /// What differs for one plugin, wherever it was found, by its name. Wins over its entry, its manifest
    /// and `defaults`; a timeout here also over the timeouts that a manifest gives to single actions.
    #[schemars(extend("x-key" = "plugin"), example = serde_json::json!({ "gitlab": { "timeout": "60s" } }))]
    pub overrides: BTreeMap<String, Override>,
    /// Plugins that are named here instead of being found in `plugin_dir`.
    #[schemars(extend("x-key" = "plugin"), example = serde_json::json!({ "weather": { "command": "/opt/weather/bin/weather" } }))]
    pub plugins: BTreeMap<String, ConfiguredPlugin>,
}

/// How plugins are started, checked, restarted and stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lifecycle {
    /// The time between two health checks of a plugin.
    ///
    /// 30 seconds: an exit is seen at once without any check, so that checks only have to find plugins that
    /// hang.
    pub health_check_interval: Duration,
    /// How long one health check may take.
    ///
    /// 5 seconds. A plugin that is busy with a call is not held unhealthy before that call's deadline.
    pub health_check_timeout: Duration,
    /// How many failed checks in a row end a plugin, which is then restarted as after a death.
    ///
    /// 3: one lost answer is no reason.
    #[schemars(range(min = 1, max = 1000))]
    pub health_failure_threshold: u32,
    /// Whether a plugin that died is started again.
    pub restart_on_failure: bool,
    /// How many deaths within `restart_window` are followed by a restart. After one more the plugin is
    /// `failed` until `talon plugin start`.
    ///
    /// 3: a plugin that does not live after that has a fault that a restart does not mend.
    #[schemars(range(max = 4096))]
    pub max_restarts: u32,
    /// The time within which deaths count together.
    ///
    /// 5 minutes, longer than `max_restarts` restarts with their backoffs take.
    pub restart_window: Duration,
    /// The wait before the first restart. It doubles with each death in the window and is varied a little at
    /// random, so that plugins that died together do not start together. What was ready and dies for the
    /// first time in the window is restarted at once.
    ///
    /// 200 milliseconds go unnoticed by callers, which wait for a restarting plugin.
    pub backoff_initial: Duration,
    /// The longest wait before a restart.
    pub backoff_max: Duration,
    /// How long a plugin may take from the start of its process until it is ready.
    ///
    /// 30 seconds start a large interpreter on a busy machine. Then it is killed, which counts as a death.
    pub start_timeout: Duration,
    /// How long calls in flight may go on once a plugin is stopped, and then again how long it may take to
    /// exit before it is killed.
    pub grace_period: Duration,
    /// How long a call waits for a plugin that is restarting, within the call's own timeout.
    ///
    /// 10 seconds cover the first restarts; then the call fails with an error that says a retry can help.
    pub ready_wait: Duration,
    /// Kills a plugin that ignores the deadline of a call for this long after it has passed, and restarts it
    /// as after a death. Off unless set; `0s` is off, too.
    ///
    /// The caller gets `timed_out` at the deadline either way, and a later answer of the plugin is discarded.
    /// Off, because a plugin that finishes late is not necessarily broken, many never look at the deadline
    /// that travels with each call, and all other calls in flight die with the process. Set it (5s, say)
    /// where late work does harm, or holds what others wait for.
    ///
    /// With it a call is not cancelled on the wire at its deadline but left alone for this time: a plugin
    /// that ends it meanwhile, with any answer, has heeded its deadline. One that has not is killed. Only the
    /// configured timeout counts: a call that ends earlier, because its caller asked for less time or went
    /// away, is cancelled at once and never counts, and what a call waited before the plugin got it is added
    /// to the plugin's time. At most 16 such calls of a process are watched at a time; further ones are
    /// cancelled at once. At most a day.
    #[serde(default)]
    pub kill_overdue_after: Option<Duration>,
}

/// What differs for one plugin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Override {
    /// How it is run.
    #[serde(flatten)]
    pub settings: PluginSettings,
    /// What it may have.
    #[serde(flatten)]
    pub grants: Grants,
}

/// A plugin that is named in the config file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfiguredPlugin {
    /// What runs and how: what a `plugin.yaml` may say, too.
    #[serde(flatten)]
    pub plugin: entry::PluginEntry,
    /// What it may have.
    #[serde(flatten)]
    pub grants: Grants,
}

/// What only the operator can let a plugin have, and no plugin can take.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Grants {
    /// The values of the caller's session context that it may have, if its actions ask for them.
    ///
    /// Nothing unless named here: what an action asks for is the plugin's wish, not the operator's. The agent
    /// gives `session_id`, `sender`, `channel` and the like, and to actions that ask for them `task`, the
    /// message of the turn, `conversation`, what was said in the turns before, and
    /// `attachment`, the file that the call's arguments name by its id.
    #[schemars(example = serde_json::json!(["session_id"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<String>>,
    /// Headers that travel with each of its calls, by a name that the plugin knows.
    #[schemars(extend("x-key" = "credential"), example = serde_json::json!({ "gitlab": { "header": "PRIVATE-TOKEN", "value": "${GITLAB_TOKEN}" } }))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<String, Credential>,
    /// What of its answers besides text MCP clients get: `image`, `audio`, `resource`, `link`.
    ///
    /// Nothing unless named here. They stand outside of the guarded block: pictures and sound are as the
    /// plugin made them and may hold text that persuades a model, and a client may follow a link.
    #[schemars(example = serde_json::json!(["image"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Vec<Media>>,
    /// How much state it may keep, where that differs from `state.quota`.
    #[schemars(example = serde_json::json!({ "bytes": "512MiB" }))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_quota: Option<QuotaOverride>,
    /// The language models that it may ask, over a socket of its own, and how much.
    ///
    /// None unless set: then the socket is not there.
    #[schemars(example = serde_json::json!({ "allow": ["auto"] }))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelGrant>,
    /// Lets it tell events: what happens elsewhere, such as a mail that came.
    ///
    /// Not unless given. They are numbered and kept apart from the supervisor's own (`talon event list --source plugins`), and go to
    /// notifications by entries that name this plugin. A reload counts within seconds.
    #[schemars(example = serde_json::json!({ "per_minute": 60 }))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<EventGrant>,
}

/// What an answer can hold besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Media {
    /// Pictures: PNG, JPEG, GIF, WebP, BMP.
    Image,
    /// Sound: WAV, MP3, Ogg, FLAC.
    Audio,
    /// The contents of resources.
    Resource,
    /// Addresses of resources.
    Link,
}

/// One header that travels with a plugin's calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credential {
    /// The header's name, as the service behind the plugin wants it.
    pub header: String,
    /// Its value. Never shown by `talon config show` nor logged.
    pub value: Secret,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            plugin_dir: None,
            watch: false,
            bridge_dir: None,
            lifecycle: Lifecycle::default(),
            start_concurrency: None,
            frames: Frames::default(),
            env_allow_list: DEFAULT_ENV_ALLOW_LIST.map(str::to_owned).to_vec(),
            defaults: CallLimits::default(),
            overrides: BTreeMap::new(),
            plugins: BTreeMap::new(),
        }
    }
}

impl Default for Lifecycle {
    fn default() -> Self {
        let default = LifecycleSettings::default();
        Self {
            health_check_interval: default.health_check_interval.into(),
            health_check_timeout: default.health_check_timeout.into(),
            health_failure_threshold: default.health_failure_threshold,
            restart_on_failure: default.restart_on_failure,
            max_restarts: default.max_restarts,
            restart_window: default.restart_window.into(),
            backoff_initial: default.backoff_initial.into(),
            backoff_max: default.backoff_max.into(),
            start_timeout: default.start_timeout.into(),
            grace_period: default.grace_period.into(),
            ready_wait: default.ready_wait.into(),
            kill_overdue_after: default.kill_overdue_after.map(Duration::from),
        }
    }
}

impl From<&Lifecycle> for LifecycleSettings {
    fn from(life: &Lifecycle) -> Self {
        Self {
            start_timeout: life.start_timeout.get(),
            health_check_interval: life.health_check_interval.get(),
            health_check_timeout: life.health_check_timeout.get(),
            health_failure_threshold: life.health_failure_threshold,
            restart_on_failure: life.restart_on_failure,
            max_restarts: life.max_restarts,
            restart_window: life.restart_window.get(),
            backoff_initial: life.backoff_initial.get(),
            backoff_max: life.backoff_max.get(),
            grace_period: life.grace_period.get(),
            ready_wait: life.ready_wait.get(),
            kill_overdue_after: life.kill_overdue_after.and_then(entry::overdue_limit),
        }
    }
}
