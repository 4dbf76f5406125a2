//! `talon plugin list`.

use clap::Args;
use talon_proto::host::ListPluginsRequest;

use super::refused::refused_plugins;
use crate::client::connection::Client;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;
use crate::{json, show};

/// List the plugins and their states, also those that were refused.
#[derive(Debug, Args)]
#[command(visible_alias = "ls")]
pub(crate) struct ListArgs {}

impl ListArgs {
    pub(super) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        let mut client = Client::connect(socket).await?;
        let response = client.host.list_plugins(ListPluginsRequest {}).await;
        let mut plugins = response.map_err(|status| client.failure(&status))?.into_inner().plugins;
        plugins.extend(refused_plugins(&mut client).await?);
        if out.is_json() {
            out.json(&json::plugins(&plugins));
        } else {
            show::plugins(&plugins, out);
        }
        Ok(exit::OK)
    }
}
