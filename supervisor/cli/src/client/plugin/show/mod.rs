//! `talon plugin show`.
//!
//! | module | contents |
//! |---|---|
//! | `facts` | the plugin's state, its settings, and what became of its calls |
//! | `declaration` | its actions, and its texts about itself |

mod declaration;
mod facts;

use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::json;
use talon_proto::host::{GetPluginRequest, GetPluginResponse, Plugin};
use tonic::{Code, Status};

pub(crate) use self::declaration::actions;
pub(super) use self::declaration::texts;
use super::refused::refused_plugins;
use crate::client::agent::plugin_cost;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::table::Table;
use crate::{json, script_table, show};

/// Show one plugin in full: its state, instances, settings and actions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon plugin show hello
  talon plugin show hello --output json | jq '.capabilities.actions[].name'")]
pub(crate) struct ShowArgs {
    /// The plugin's name.
    #[arg(value_name = "PLUGIN")]
    name: String,
}

impl ShowArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let request = GetPluginRequest { name: self.name.clone(), for_model: false };
        let response = match client.host.get_plugin(request).await {
            Ok(response) => response.into_inner(),
            Err(status) => {
                let plugin = self.refused(&mut client, &status).await?;
                GetPluginResponse { plugin: Some(plugin), ..GetPluginResponse::default() }
            }
        };
        // Whoever may not see settings, or has no agent, sees the rest.
        let is_granted = response.settings.as_ref().is_some_and(|settings| settings.models.is_some());
        let models_today = if is_granted { Some(plugin_cost::today(socket, &self.name).await) } else { None };
        if out.is_json() {
            let mut details = json::plugin_details(&response);
            if let Some(Ok(cost)) = &models_today {
                details["models_today"] = json!(cost);
            }
            out.json(&details);
        } else {
            let models_today = models_today.map(|used| match used {
                Ok(cost) => plugin_cost::line(&cost),
                Err(failure) => format!("not known: {failure}"),
            });
            print(&response, models_today.as_deref(), out);
        }
        Ok(exit::OK)
    }
}

impl ShowArgs {
    /// The plugin, if it is unknown because it was refused; otherwise the failure.
    async fn refused(&self, client: &mut Client, status: &Status) -> Result<Plugin, Failure> {
        let unknown = client.failure(status);
        if status.code() != Code::NotFound {
            return Err(unknown);
        }
        let refused = refused_plugins(client).await?;
        refused.into_iter().find(|plugin| plugin.name == self.name).ok_or(unknown)
    }
}

fn print(response: &GetPluginResponse, models_today: Option<&str>, out: &mut Output) {
    if let Some(plugin) = &response.plugin {
        let (settings, capabilities) = (response.settings.as_ref(), response.capabilities.as_ref());
        out.table(&facts::table(plugin, settings, capabilities, models_today));
        instances(plugin, out);
        if let Some(mut scripts) = script_table::table([plugin]) {
            scripts.fit(out.columns());
            out.line("");
            out.table(&scripts);
        }
    }
    if !response.extensions.is_empty() {
        out.line("");
        out.table(&show::extensions(&response.extensions));
    }
    if let Some(capabilities) = &response.capabilities
        && response.plugin.as_ref().is_some_and(|plugin| plugin.changed_texts)
    {
        out.line("");
        texts(capabilities, out);
    }
    if let Some(capabilities) = &response.capabilities
        && !capabilities.actions.is_empty()
    {
        out.line("");
        let changed = response.plugin.as_ref().map_or(&[][..], |plugin| &plugin.changed_actions);
        actions(capabilities, changed, out);
    }
}

fn instances(plugin: &Plugin, out: &mut Output) {
    if plugin.instances.is_empty() {
        return;
    }
    let now = SystemTime::now();
    let mut table =
        Table::new(&["INSTANCE", "STATE", "PID", "UID", "GENERATION", "IN FLIGHT", "STARTED IN", "UP FOR"]);
    for instance in &plugin.instances {
        let started_in = match instance.start_to_ready_us {
            0 => String::new(),
            us => format!("{:.1} ms", Duration::from_micros(us).as_secs_f64() * 1000.0),
        };
        table.row(vec![
            instance.index.into(),
            show::state(&instance.state, ""),
            if instance.pid == 0 { "".into() } else { instance.pid.into() },
            if instance.pid == 0 { "".into() } else { instance.uid.into() },
            instance.generation.into(),
            instance.calls_in_flight.into(),
            started_in.into(),
            show::up_for(instance, now).map(show::short).unwrap_or_default().into(),
        ]);
    }
    out.line("");
    out.table(&table);
}
