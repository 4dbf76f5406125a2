//! One line of a plugin's output.

use std::fmt;
use std::time::SystemTime;

use talon_plugin_config::name::PluginName;
use talon_sanitize::Sanitized;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// For debugging every step.
    Trace,
    /// For debugging.
    Debug,
    /// Normal information; also the level of a line that has none.
    Info,
    /// Something may be wrong.
    Warn,
    /// Something is wrong.
    Error,
}

impl Level {
    /// The name in the host API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// The plugin's standard output.
    Stdout,
    /// The plugin's standard error.
    Stderr,
    /// A note by the supervisor about the plugin.
    Supervisor,
}

impl Stream {
    /// The name in the host API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Supervisor => "supervisor",
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One line of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When the supervisor read it.
    pub at: SystemTime,
    /// The plugin.
    pub plugin: PluginName,
    /// Which of its processes, from 0.
    pub instance: u32,
    /// The severity.
    pub level: Level,
    /// The source.
    pub stream: Stream,
    /// The text: bounded, one line, sanitized when it was read.
    pub text: Sanitized,
}
