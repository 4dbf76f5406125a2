//! Programs that stand between us and a plugin that speaks something else than gRPC.
//!
//! A bridge runs in the plugin's jail, as the plugin's uid, and starts the plugin's program as its own child. To us it is
//! the plugin, built with our SDK; so what reads foreign formats is as little trusted as what writes them, and nobody
//! with privileges parses anything but protobuf.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::spec::{Dialect, PluginSpec};

/// Where a bridge finds the address of its server. In the environment, because every user of the machine can read command
/// lines, and an address may hold a key.
pub(crate) const URL_VARIABLE: &str = "TALON_PLUGIN_URL";

/// Where the bridges are. The binary fills it in; `None`: that bridge is not installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bridges {
    /// `talon-mcp-bridge`: for MCP servers.
    pub mcp: Option<PathBuf>,
    /// `talon-framed-bridge`: for the oldest OpenTalon plugins.
    pub framed: Option<PathBuf>,
}

/// A bridge that a plugin needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bridge {
    Mcp,
    Framed,
}

impl Bridge {
    /// The bridge of a dialect, if it needs one.
    pub(crate) fn of(dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::Mcp => Some(Self::Mcp),
            Dialect::OpenTalonV0 => Some(Self::Framed),
            Dialect::Auto | Dialect::GoPlugin | Dialect::OpenTalon => None,
        }
    }

    /// Its file name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mcp => "talon-mcp-bridge",
            Self::Framed => "talon-framed-bridge",
        }
    }

    /// Where it is.
    pub(crate) fn program(self, bridges: &Bridges) -> Option<&Path> {
        match self {
            Self::Mcp => bridges.mcp.as_deref(),
            Self::Framed => bridges.framed.as_deref(),
        }
    }

    /// What it is told after its own name: `--` and the plugin's command line, or `--url`, and the server's address in
    /// `URL_VARIABLE`. The one for MCP hears before that how long a start may take, so that it can say what is missing before we give up.
    pub(crate) fn args(self, spec: &PluginSpec, program: OsString) -> Vec<OsString> {
        let mut args = match self {
            Self::Mcp => {
                vec!["--start-timeout-ms".into(), spec.lifecycle.start_timeout.as_millis().to_string().into()]
            }
            Self::Framed => Vec::new(),
        };
        match &spec.url {
            Some(_) => args.push("--url".into()),
            None => args.extend(["--".into(), program].into_iter().chain(spec.args.iter().map(Into::into))),
        }
        args
    }
}
