//! What logins need to know of a plugin with an address.

use std::path::PathBuf;

use talon_plugin_config::name::PluginName;
use talon_proto::host::RestartRequest;
use talon_supervisor::program_lookup;

use crate::client::connection::Client;
use crate::failure::Failure;
use crate::global::Global;
use crate::host_socket::HostSocket;
use crate::local::configuration;

/// The program that logs in and out.
pub(super) const PROGRAM: &str = "talon-mcp-bridge";
/// Where the bridge looks for the credential.
pub(super) const KEY: &str = "talon.oauth";

/// What the configuration says of a plugin with an address.
pub(super) struct RemoteServer {
    pub(super) url: String,
    /// The program that logs in.
    pub(super) bridge: PathBuf,
}

impl RemoteServer {
    pub(super) fn of(global: &Global, name: &PluginName) -> Result<Self, Failure> {
        let config = configuration::load(&configuration::load_options(global))?.config;
        let tools = &config.plugins.tools;
        let Some(entry) = tools.plugins.get(name.as_str()) else {
            return Err(Failure::usage(format!(
                "plugins.tools.plugins has no {name}: add it first, or name its configuration with --config"
            )));
        };
        let Some(url) = entry.plugin.url.clone() else {
            return Err(Failure::usage(format!("{name} has no url: a login is for servers that have one")));
        };
        let bridge = match &tools.bridge_dir {
            Some(dir) => dir.join(PROGRAM),
            None => program_lookup::find(PROGRAM).map_err(|error| Failure::failed(error.to_string()))?,
        };
        Ok(Self { url, bridge })
    }
}

/// Starts the plugin anew, if a supervisor has it; whether one does.
pub(super) async fn restart(global: &Global, name: &PluginName) -> Result<bool, Failure> {
    let Some(mut client) = Client::connect_if_there(&HostSocket::new(global)).await? else {
        return Ok(false);
    };
    match client.host.restart(RestartRequest { name: name.to_string() }).await {
        Ok(_) => Ok(true),
        Err(status) if status.code() == tonic::Code::NotFound => Ok(false),
        Err(status) => Err(client.failure(&status)),
    }
}
