//! A client of a supervisor with many plugins; each call goes to a random one.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use talon_client::Client;

use super::host;
use crate::load::Caller;
use crate::rng::PluginPicker;

/// The name of the plugin with this number.
#[must_use]
pub fn plugin_name(number: usize) -> String {
    format!("{}-{number}", super::PLUGIN)
}

#[derive(Clone)]
pub(super) struct ManyPluginsCaller {
    client: Arc<Client>,
    whom: PluginPicker,
}

impl ManyPluginsCaller {
    pub(super) async fn to(socket: PathBuf, count: usize) -> Result<Self> {
        Ok(Self { client: Arc::new(Client::connect(socket).await?), whom: PluginPicker::of(count) })
    }
}

impl Caller for ManyPluginsCaller {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        let plugin = plugin_name(self.whom.next());
        host::say(&self.client, &plugin, content_bytes).await
    }
}
