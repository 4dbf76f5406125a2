//! Bridges: programs that translate between Talon and a plugin that does not speak gRPC.
//!
//! A bridge runs in the plugin's jail, under the plugin's uid, and starts the plugin's program as its child.
//! The supervisor treats the bridge as the plugin; it is built with the Talon SDK. So the parser of a foreign
//! format has no more privileges than the plugin itself, and privileged processes parse only protobuf.

use std::ffi::OsString;
use std::path::Path;

use crate::spec::{Bridges, Dialect, ForeignService, PluginSpec};

/// The variable with the address of a bridge's server. In the environment, because every user of the machine
/// can read command lines, and an address may hold a key.
pub const URL_VARIABLE: &str = "TALON_PLUGIN_URL";

/// The key of `config` for which the MCP bridge has to know the granted paths.
const ROOTS_KEY: &str = "roots";

/// A bridge that a plugin needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bridge {
    /// `talon-mcp-bridge`.
    Mcp,
    /// `talon-framed-bridge`.
    Framed,
    /// `talon-service-bridge`.
    Service,
}

impl Bridge {
    /// The bridge of a plugin, if it needs one.
    #[must_use]
    pub fn for_plugin(spec: &PluginSpec) -> Option<Self> {
        match spec.foreign_service {
            Some(_) => Some(Self::Service),
            None => Self::for_dialect(spec.dialect),
        }
    }

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
            Self::Service => "talon-service-bridge",
        }
    }

    /// Its path, if it is installed.
    pub fn program(self, bridges: &Bridges) -> Option<&Path> {
        match self {
            Self::Mcp => bridges.mcp.as_deref(),
            Self::Framed => bridges.framed.as_deref(),
            Self::Service => bridges.service.as_deref(),
        }
    }

    /// Its arguments: `--` and the plugin's command line, or `--url` with the server's address in
    /// `URL_VARIABLE`. The MCP bridge first gets the start timeout, so that it can report what is missing
    /// before the supervisor gives up, and the paths that the jail grants if `config.roots` is set. `view` is the
    /// copy of the plugin's directory that it runs from.
    #[must_use]
    pub fn args(self, spec: &PluginSpec, program: OsString, view: Option<&Path>) -> Vec<OsString> {
        let mut args = match self {
            Self::Mcp => {
                let timeout = spec.lifecycle.start_timeout.as_millis().to_string();
                let mut args: Vec<OsString> = vec!["--start-timeout-ms".into(), timeout.into()];
                // Only for those that are asked for, so that the others keep their command line.
                if spec.config.contains_key(ROOTS_KEY) {
                    let fs = &spec.sandbox.fs;
                    let granted = [&fs.read, &fs.write].into_iter().flatten().flatten();
                    args.extend(granted.flat_map(|path| ["--granted".into(), path.into()]));
                }
                args
            }
            Self::Framed => Vec::new(),
            Self::Service => spec
                .foreign_service
                .as_ref()
                .map(|foreign| service_args(spec, foreign, view))
                .unwrap_or_default(),
        };
        match &spec.url {
            Some(_) => args.push("--url".into()),
            None => args.extend(["--".into(), program].into_iter().chain(spec.args.iter().map(Into::into))),
        }
        args
    }
}

/// What the service bridge has to know. The magic cookie is no secret, see [`Cookie`](crate::spec::Cookie).
fn service_args(spec: &PluginSpec, foreign: &ForeignService, view: Option<&Path>) -> Vec<OsString> {
    let inside = |directory| foreign.descriptor.strip_prefix(directory).ok();
    let descriptor = match (spec.directory.as_deref().and_then(inside), view) {
        (Some(inside), Some(view)) => view.join(inside),
        _ => foreign.descriptor.clone(),
    };
    let versions: Vec<String> = spec.app_versions.iter().map(u32::to_string).collect();
    let millis = |time: std::time::Duration| OsString::from(time.as_millis().to_string());
    let mut args: Vec<OsString> = vec![
        "--descriptor".into(),
        descriptor.into(),
        "--service".into(),
        spec.service.clone().into(),
        "--cookie".into(),
        format!("{}={}", spec.cookie.key, spec.cookie.value).into(),
        "--app-versions".into(),
        versions.join(",").into(),
        "--health-interval-ms".into(),
        millis(spec.lifecycle.health_check_interval),
        "--health-timeout-ms".into(),
        millis(spec.lifecycle.health_check_timeout),
        "--health-threshold".into(),
        spec.lifecycle.health_failure_threshold.to_string().into(),
    ];
    for (method, action) in &foreign.methods {
        args.extend(["--method".into(), format!("{method}={action}").into()]);
    }
    args
}
