//! Entries and files that the supervisor refused as plugins.

use talon_proto::host::{GetStatusRequest, Plugin};

use crate::client::connection::Client;
use crate::failure::Failure;

/// The refused ones as plugins with the state `refused` and their reason, without those of which an earlier version
/// runs.
pub(super) async fn refused_plugins(client: &mut Client) -> Result<Vec<Plugin>, Failure> {
    let response = client.host.get_status(GetStatusRequest {}).await;
    let status = response.map_err(|status| client.failure(&status))?.into_inner();
    let runs = |name: &str| status.plugins.iter().any(|plugin| plugin.name == name);
    let refused = status.refused.into_iter().filter(|refused| !runs(&refused.name));
    let plugin = |refused: talon_proto::host::RefusedPlugin| Plugin {
        name: refused.name,
        state: "refused".to_owned(),
        desired: "up".to_owned(),
        reason: refused.reason,
        ..Plugin::default()
    };
    Ok(refused.map(plugin).collect())
}
