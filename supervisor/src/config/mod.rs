//! The configuration: one YAML file, the environment, flags; checked as a whole before anything starts.
//!
//! | module | contents |
//! |---|---|
//! | `types`, `schema` | the keys, their defaults and their documentation |
//! | `regular_file` | opens files without waiting for them |
//! | `layers`, `substitute` | file, environment and flags, each checked against the schema by [`talon_plugin_config::document`] |
//! | `merge` | merges them with figment |
//! | `options`, `load` | from the sources to the checked configuration |
//! | `overlay` | what is changed while the supervisor runs |
//! | `lua` | `plugins.lua` as a plugin and entries of `extensions` |
//! | `check` | checks that no schema can express |
//! | `show`, `values`, `reference` | output for people and for clients |
//! | `diff` | the differences of two configurations |
//! | `peers`, `specs` | the configuration in the form that other modules need |
//!
//! All problems are reported together, each with its file, line and column, or its variable or flag.

mod check;
mod confirm_patterns;
mod diff;
mod environment;
mod layers;
mod load;
pub(crate) mod lua;
mod merge;
mod options;
pub(crate) mod overlay;
mod peers;
mod reference;
pub(crate) mod regular_file;
mod schema;
mod secret;
mod show;
mod specs;
mod substitute;
mod types;
mod values;

pub(crate) use self::confirm_patterns::read_confirm_patterns;
pub use self::environment::{DefaultPath, DefaultPaths, Environment};
pub use self::load::{Loaded, load, load_runtime_dir};
pub use self::options::{LoadOptions, Override};
pub use self::overlay::OverlayUse;
pub(crate) use self::peers::name_of;
pub use self::peers::{AllowedActions, PeerPolicy, Rights};
pub use self::reference::{EXAMPLE, write_reference};
pub use self::regular_file::{OpenError, open as open_regular_file};
pub use self::schema::json_schema;
pub use self::secret::{REDACTED, Secret, sounds_secret};
pub use self::specs::{CallPolicy, GuardStores};
pub use self::types::{
    Admin, Audit, AuditArguments, BehindProxy, Breaker, Config, ConfiguredPlugin, Credential, Engine,
    Envelope, Events, Frames, Gateway, GatewayLimits, GatewayRouting, GatewayTls, Grants, Guard, Host,
    HostLimits, Lifecycle, Log, LogFormat, LuaLibrary, LuaLimits, LuaScript, LuaScriptLimits, LuaScripts,
    Media, ModelGrant, Origin as PeerOrigin, Override as PluginOverride, Oversize, OwnBudget, Pages, Peer,
    PluginStorage, PluginStorageEngine, Plugins, Quarantine, Quota, QuotaOverride, Reload, Role, Sandbox,
    State, Tools, Traces, User,
};
pub(crate) use self::values::ConfigRow;
pub use talon_plugin_config::document::origin::{KeyPath, Source};
pub use talon_plugin_config::document::problem::{Problem, Problems as ConfigErrors};
pub use talon_plugin_config::entry::SandboxMode;

#[cfg(test)]
mod agent_tests;
#[cfg(test)]
mod gateway_tests;
#[cfg(test)]
mod shadow_tests;
#[cfg(test)]
mod tests;
