//! The settings of plugins: what a `plugin.yaml` and the config file may say, and what follows from it.
//!
//! | module | responsibility |
//! |---|---|
//! | [`spec`] | the settings of one plugin, complete and checked: the input of every start |
//! | [`entry`] | the keys of a `plugin.yaml` and of the config file, and how one source overrides another |
//! | [`document`], [`units`] | read YAML against a schema, with the position of every problem |
//! | [`discover`] | finds plugins, and checks what was found |
//! | [`files`], [`profile`] | the files that a plugin runs from, and its system call profile |
//! | [`name`], [`grant`], [`allow_list`], [`host_port`], [`environment`] | single values |
//! | [`bridge`], [`fingerprint`], [`privileges`] | what a start derives from a spec and from this process |
//! | [`status_summary`] | the line in which people read how all plugins are |
//!
//! Nothing here starts a process or opens a socket.

pub mod allow_list;
pub mod bridge;
pub mod discover;
pub mod document;
pub mod entry;
pub mod environment;
pub mod files;
pub mod fingerprint;
pub mod grant;
pub mod host_port;
pub mod name;
pub mod privileges;
pub mod profile;
pub mod spec;
pub mod status_summary;
pub mod units;

pub use environment::DEFAULT_ENV_ALLOW_LIST;
pub use grant::ActionPattern;
pub use name::{PLUGIN_TEXTS, PluginName};
pub use spec::{Bridges, MAX_INSTANCES, PluginSpec};
