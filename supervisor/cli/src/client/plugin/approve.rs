//! `talon plugin approve`.

use std::collections::BTreeMap;

use clap::Args;
use talon_plugin_config::PLUGIN_TEXTS;
use talon_proto::host::{ApproveRequest, ApproveResponse, GetPluginRequest, GetPluginResponse};
use talon_sanitize::sanitized;

use super::show;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::{confirm, json};

/// Approve what a plugin's actions declare now, after they changed.
///
/// The first declaration of a plugin is approved automatically. A new or changed action is reported later,
/// and refused until it is approved if `changed_tools: block` is set; `talon plugin show` marks it. The
/// current declaration is shown first, and only that is approved: read it, because a model will read its
/// description.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon plugin show web-tools
  talon plugin approve web-tools
  talon plugin approve web-tools fetch search")]
pub(crate) struct ApproveArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
    /// Only these actions; otherwise all that changed. The plugin's description of itself is the action
    /// `(plugin)`.
    #[arg(value_name = "ACTION")]
    actions: Vec<String>,
    /// Do not ask for confirmation. Without a terminal there is no confirmation anyway.
    #[arg(long)]
    yes: bool,
}

impl ApproveArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let asked = GetPluginRequest { name: self.name.clone(), for_model: false };
        let seen =
            client.host.get_plugin(asked).await.map_err(|status| client.failure(&status))?.into_inner();
        let digests = self.shown(&seen, out);
        let nothing = digests.is_empty() && seen.capabilities.is_some();
        if !digests.values().all(String::is_empty) && !self.is_confirmed(out)? {
            out.err_line("nothing was changed");
            return Ok(exit::OK);
        }
        let response = if nothing {
            // A change that happens now was not shown.
            ApproveResponse { plugin: seen.plugin, approved: Vec::new() }
        } else {
            let request = ApproveRequest { name: self.name, actions: self.actions, digests };
            client.host.approve(request).await.map_err(|status| client.failure(&status))?.into_inner()
        };
        if out.is_json() {
            let plugin = response.plugin.as_ref().map(json::plugin);
            out.json(&serde_json::json!({ "plugin": plugin, "approved": response.approved }));
        } else if let Some(plugin) = response.plugin {
            let what = match response.approved.as_slice() {
                [] => "nothing of that had changed".into(),
                approved => sanitized!("approved {}", sanitized_line(approved.join(", "))),
            };
            let left = match plugin.changed_actions.len() {
                0 => "".into(),
                left => sanitized!("; {} more changed actions are not approved", left),
            };
            out.line(sanitized!("{}: {}{}", sanitized_line(&plugin.name), what, left));
        }
        Ok(exit::OK)
    }

    /// Shows the requested changed actions; returns their digests, and an empty digest for an action that did
    /// not change.
    fn shown(&self, seen: &GetPluginResponse, out: &mut Output) -> BTreeMap<String, String> {
        let mut digests = seen.declaration_digests.clone();
        if !self.actions.is_empty() {
            digests.retain(|action, _| self.actions.contains(action));
        }
        if let Some(capabilities) = seen.capabilities.as_ref().filter(|_| !out.is_json()) {
            let mut capabilities = capabilities.clone();
            if digests.contains_key(PLUGIN_TEXTS) {
                show::texts(&capabilities, out);
            }
            capabilities.actions.retain(|action| digests.contains_key(&action.name));
            let changed: Vec<String> = digests.keys().cloned().collect();
            show::actions(&capabilities, &changed, out);
        }
        for action in &self.actions {
            digests.entry(action.clone()).or_default();
        }
        digests
    }

    fn is_confirmed(&self, out: &mut Output) -> Result<bool, Failure> {
        if self.yes || !confirm::is_interactive() {
            return Ok(true);
        }
        confirm::is_confirmed(sanitized!("Approve that of {}?", sanitized_line(&self.name)), out)
    }
}
