//! `talon mcp logout`: the tokens of a remote MCP server are withdrawn, and removed from its plugin's state.

use std::io::Write as _;
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;
use talon_plugin_config::name::PluginName;
use talon_proto::state::{DeleteEntryRequest, GetEntryRequest};
use talon_sanitize::sanitized;

use super::remote_server::{KEY, PROGRAM, RemoteServer, restart};
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::local::state::access::{Purpose, StateAccess};
use crate::output::Output;

/// Log out of a remote MCP server: withdraw its tokens where they came from, and remove them here.
///
/// If the authorization server has an endpoint for that (RFC 7009), it makes the tokens void; otherwise they are removed
/// from the plugin's state alone. If it cannot be reached, or refuses, nothing is removed: `talon mcp login --remove` does
/// that. Needs the rights of an administrator of the supervisor.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon mcp logout issues")]
pub(super) struct LogoutArgs {
    /// The plugin; it has a `url`.
    #[arg(value_name = "PLUGIN")]
    plugin: String,
}

impl LogoutArgs {
    pub(super) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let name = PluginName::new(&self.plugin).map_err(|error| Failure::usage(error.to_string()))?;
        let server = RemoteServer::of(global, &name)?;
        let mut operator = StateAccess::find(global).await?.plugins(Purpose::Use).await?;
        let (plugin, key) = (name.to_string(), KEY.to_owned());
        let request = GetEntryRequest { plugin: plugin.clone(), key: key.clone() };
        let stored = operator.client.get_entry(request).await;
        let stored = stored.map_err(|status| operator.failure(&status))?.into_inner().value;
        let Some(credential) = stored else {
            return Err(Failure::new(
                exit::REFUSED,
                format!("{name} has no login: there is nothing to withdraw"),
            ));
        };
        let revoked = revoke(&server, &credential)?;
        let request = DeleteEntryRequest { plugin, key };
        operator.client.delete_entry(request).await.map_err(|status| operator.failure(&status))?;
        // Without a login the plugin may not start: that is what was asked for.
        let restarted = restart(global, &name).await.unwrap_or(true);
        if out.is_json() {
            out.json(&json!({ "plugin": name.as_str(), "revoked": revoked, "removed": true, "restarted": restarted }));
        } else if revoked {
            out.line(sanitized!("withdrew the login of {}, and removed it", &name));
        } else {
            out.line(sanitized!(
                "removed the login of {}; its authorization server takes no tokens back, so they are valid until they expire",
                &name
            ));
        }
        Ok(exit::OK)
    }
}

/// Has the bridge withdraw the tokens, so that `talon` needs no HTTP client; whether the server takes them back. They go
/// through a pipe, because every user of the machine could read a command line.
fn revoke(server: &RemoteServer, credential: &[u8]) -> Result<bool, Failure> {
    let cannot =
        |error| Failure::failed(format!("cannot run {PROGRAM}: {error}; install it beside talon again"));
    let mut command = Command::new(&server.bridge);
    command.arg("--logout").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    if let Some(mut input) = child.stdin.take() {
        // One that ended already says why.
        let _ = input.write_all(credential);
    }
    let output = child.wait_with_output().map_err(cannot)?;
    match output.stdout.trim_ascii() {
        b"true" if output.status.success() => Ok(true),
        b"false" if output.status.success() => Ok(false),
        _ => Err(Failure::new(
            exit::REFUSED,
            "the login is not withdrawn, and stays: see above; `talon mcp login --remove` removes it here alone".to_owned(),
        )),
    }
}
