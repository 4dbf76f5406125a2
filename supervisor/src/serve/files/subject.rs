//! What is watched, and its state.

use std::path::PathBuf;

use talon_plugin_config::PluginName;

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Config,
    /// The names in `plugins.lua.scripts_dir`. What the files say is read by `talon-lua` alone.
    LuaScripts,
    /// Which directory `plugins.lua.scripts_dir` is: a jail keeps showing the one that it began with.
    LuaDirectory,
    PluginDir,
    Plugin(PluginName),
    /// A refused entry of the plugin directory that is not a running plugin.
    Unregistered(PathBuf),
}

/// The state of a watched subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SubjectState {
    /// It exists, with this digest.
    Present(String),
    /// It exists, but is refused for this reason.
    Refused(String),
    Gone,
    /// Unknown, because its directory cannot be read.
    Unknown,
}
