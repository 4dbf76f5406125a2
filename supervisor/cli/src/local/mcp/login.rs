//! `talon mcp login`: the tokens of a remote MCP server, kept in its plugin's state.
//!
//! `talon-mcp-bridge` does the login, so that `talon` needs no HTTP client; this verb finds the server's
//! address, and stores what came of it.

use std::io::Read as _;
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;
use talon_plugin_config::name::PluginName;
use talon_proto::state::{DeleteEntryRequest, SetEntryRequest};
use talon_sanitize::sanitized;

use super::remote_server::{KEY, PROGRAM, RemoteServer, restart};
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::local::state::access::{Purpose, StateAccess};
use crate::output::Output;

/// How it gets the server's address.
const URL_VARIABLE: &str = "TALON_PLUGIN_URL";
/// The largest credential, as the store takes values.
const MAX_CREDENTIAL_BYTES: u64 = 1 << 20;

/// Log in to a remote MCP server with OAuth, and keep its tokens in the plugin's state.
///
/// Prints an address to open in a browser. The tokens are never in the configuration; the plugin renews them
/// itself; `talon mcp logout` withdraws them, and --remove only removes them here. Needs the rights of an administrator of the
/// supervisor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon mcp login issues
  talon mcp login issues --client-id 1234 --scope 'read write'
  talon mcp login issues --device
  TALON_MCP_CLIENT_SECRET=… talon mcp login issues --client-id 1234
  talon mcp login issues --remove")]
pub(super) struct LoginArgs {
    /// The plugin; it has a `url`.
    #[arg(value_name = "PLUGIN")]
    plugin: String,
    /// The id of a client that you registered with the authorization server; otherwise one is registered. Its
    /// secret, if it has one, is read from TALON_MCP_CLIENT_SECRET.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// What the tokens are for, as the server names it; otherwise what it asks for.
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Print an address and a code for any other device, for a machine that no browser can come back to. The
    /// authorization server has to offer that (RFC 8628).
    #[arg(long)]
    device: bool,
    /// Remove the tokens instead, without withdrawing them.
    #[arg(long, conflicts_with_all = ["client_id", "scope", "device"])]
    remove: bool,
}

impl LoginArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let name = PluginName::new(&self.plugin).map_err(|error| Failure::usage(error.to_string()))?;
        let server = RemoteServer::of(global, &name)?;
        // First, so that no login is lost for want of a right.
        let mut operator = StateAccess::find(global).await?.plugins(Purpose::Add).await?;
        let (plugin, key) = (name.to_string(), KEY.to_owned());
        let said = if self.remove {
            let request = DeleteEntryRequest { plugin, key };
            operator.client.delete_entry(request).await.map_err(|status| operator.failure(&status))?;
            sanitized!("removed the login of {}", &name)
        } else {
            let value = self.credential(&server)?;
            let request = SetEntryRequest { plugin, key, value };
            operator.client.set_entry(request).await.map_err(|status| operator.failure(&status))?;
            sanitized!("stored the login of {} in its state", &name)
        };
        if !out.is_json() {
            out.line(said);
        }
        let restarted = match restart(global, &name).await {
            // Without a login the plugin may not start: that is what was asked for.
            Err(_) if self.remove => true,
            restarted => restarted?,
        };
        if out.is_json() {
            out.json(&json!({ "plugin": name.as_str(), "logged_in": !self.remove, "restarted": restarted }));
        } else if !restarted {
            out.line(sanitized!("no supervisor runs it now; its next start uses that"));
        }
        Ok(exit::OK)
    }

    /// Runs the login. What it asks of the person goes to standard error.
    fn credential(&self, server: &RemoteServer) -> Result<Vec<u8>, Failure> {
        let mut command = Command::new(&server.bridge);
        command.arg("--login").env(URL_VARIABLE, &server.url).stdout(Stdio::piped());
        if self.device {
            command.arg("--device");
        }
        for (flag, value) in [("--client-id", &self.client_id), ("--scope", &self.scope)] {
            if let Some(value) = value {
                command.arg(flag).arg(value);
            }
        }
        let cannot =
            |error| Failure::failed(format!("cannot run {PROGRAM}: {error}; install it beside talon again"));
        let mut child = command.spawn().map_err(cannot)?;
        let mut credential = Vec::new();
        if let Some(output) = child.stdout.take() {
            output.take(MAX_CREDENTIAL_BYTES).read_to_end(&mut credential).map_err(cannot)?;
        }
        let status = child.wait().map_err(cannot)?;
        if status.success() && !credential.is_empty() {
            return Ok(credential);
        }
        Err(Failure::new(exit::REFUSED, "there is no login: see above".to_owned()))
    }
}
