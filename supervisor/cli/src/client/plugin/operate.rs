//! `talon plugin start`, `stop`, `restart`, `reload` and `refresh`: they return when the plugin reached the
//! state or failed to.

use clap::Args;
use talon_proto::host::{
    Plugin, RefreshCapabilitiesRequest, ReloadPluginRequest, RestartRequest, StartRequest, StopRequest,
};
use talon_sanitize::sanitized;

use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::json;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::transient_bar::TransientBar;

/// Start a plugin, including one that has failed; resets its restart counter.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
}

/// Stop a plugin and keep it stopped: calls in flight may finish within the grace period.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
}

/// Stop a plugin and start it again.
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
}

/// Replace a plugin by the current version of its files, without losing a call.
///
/// Starts new processes next to the running ones, from the current files and manifest, with the active
/// configuration. Once all of them are ready they get the new calls, and the old ones finish theirs and stop.
/// If they do not become ready they are removed, and the old ones keep running. New processes are started
/// even if nothing changed; a stopped plugin is started.
#[derive(Debug, Args)]
pub(crate) struct ReloadArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
}

/// Have a running plugin report its actions again.
#[derive(Debug, Args)]
pub(crate) struct RefreshArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
}

impl StartArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let response = client.host.start(StartRequest { name: self.name }).await;
        print(response.map_err(|status| client.failure(&status))?.into_inner().plugin, out);
        Ok(exit::OK)
    }
}

impl StopArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let response = client.host.stop(StopRequest { name: self.name }).await;
        print(response.map_err(|status| client.failure(&status))?.into_inner().plugin, out);
        Ok(exit::OK)
    }
}

impl RestartArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let response = client.host.restart(RestartRequest { name: self.name }).await;
        print(response.map_err(|status| client.failure(&status))?.into_inner().plugin, out);
        Ok(exit::OK)
    }
}

impl ReloadArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let waiting =
            TransientBar::spinner(format!("waiting until the new {} is ready", sanitized_line(&self.name)));
        let response = client.host.reload_plugin(ReloadPluginRequest { name: self.name }).await;
        drop(waiting);
        let response = response.map_err(|status| client.failure(&status))?.into_inner();
        let plugin = response.plugin.unwrap_or_default();
        if out.is_json() {
            out.json(&serde_json::json!({
                "plugin": json::plugin(&plugin),
                "outcome": response.outcome,
                "old_digest": response.old_digest,
                "new_digest": response.new_digest,
                "duration_ms": response.duration_ms,
            }));
        } else {
            let what = match response.old_digest == response.new_digest {
                true => "the program is the same",
                false => "another program",
            };
            let took = response.duration_ms;
            out.line(sanitized_line(format_args!(
                "{}: {} in {took} ms, {what}",
                plugin.name, response.outcome
            )));
        }
        Ok(exit::OK)
    }
}

impl RefreshArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let request = RefreshCapabilitiesRequest { name: self.name };
        let response =
            client.host.refresh_capabilities(request).await.map_err(|status| client.failure(&status))?;
        let response = response.into_inner();
        if out.is_json() {
            let plugin = response.plugin.as_ref().map(json::plugin);
            out.json(&serde_json::json!({ "plugin": plugin, "refreshed": response.refreshed }));
        } else if let Some(plugin) = response.plugin {
            let what = if response.refreshed {
                sanitized!("{} actions", plugin.actions)
            } else {
                sanitized!("does not support refreshing; its {} actions stay as they were", plugin.actions)
            };
            out.line(sanitized!("{}: {}", sanitized_line(&plugin.name), what));
        }
        Ok(exit::OK)
    }
}

fn print(plugin: Option<Plugin>, out: &mut Output) {
    let plugin = plugin.unwrap_or_default();
    if out.is_json() {
        out.json(&json::plugin(&plugin));
        return;
    }
    let reason = if plugin.reason.is_empty() { String::new() } else { format!(": {}", plugin.reason) };
    out.line(sanitized_line(format_args!("{}: {}{reason}", plugin.name, plugin.state)));
}
