//! Bridges: programs that translate between Talon and a plugin that does not speak gRPC.
//!
//! A bridge runs in the plugin's jail, under the plugin's uid, and starts the plugin's program as its child.
//! The supervisor treats the bridge as the plugin; it is built with the Talon SDK. So the parser of a foreign
//! format has no more privileges than the plugin itself, and privileged processes parse only protobuf.

use std::ffi::OsString;
use std::path::Path;

use crate::spec::{Bridges, Dialect, PluginSpec};

/// The variable with the address of a bridge's server. In the environment, because every user of the machine
/// can read command lines, and an address may hold a key.
pub const URL_VARIABLE: &str = "TALON_PLUGIN_URL";

/// A bridge that a plugin needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bridge {
    /// `talon-mcp-bridge`.
    Mcp,
    /// `talon-framed-bridge`.
    Framed,
}

impl Bridge {
    /// The bridge of a dialect, if it needs one.
    pub fn for_dialect(dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::Mcp => Some(Self::Mcp),
            Dialect::OpenTalonV0 => Some(Self::Framed),
            Dialect::Auto | Dialect::GoPlugin | Dialect::OpenTalon => None,
        }
    }

    /// Its file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "talon-mcp-bridge",
            Self::Framed => "talon-framed-bridge",
        }
    }

    /// Its path, if it is installed.
    pub fn program(self, bridges: &Bridges) -> Option<&Path> {
        match self {
            Self::Mcp => bridges.mcp.as_deref(),
            Self::Framed => bridges.framed.as_deref(),
        }
    }

    /// Its arguments: `--` and the plugin's command line, or `--url` with the server's address in
    /// `URL_VARIABLE`. The MCP bridge first gets the start timeout, so that it can report what is missing
    /// before the supervisor gives up.
    pub fn args(self, spec: &PluginSpec, program: OsString) -> Vec<OsString> {
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
