//! A client of a supervisor with many plugins; each call goes to a random one.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use talon_client::Client;

use super::host;
use crate::draw::Whom;
use crate::load::Caller;

/// The name of the plugin with this number.
#[must_use]
pub fn numbered(number: usize) -> String {
    format!("{}-{number}", super::PLUGIN)
}

#[derive(Clone)]
pub(super) struct Calls {
    client: Arc<Client>,
    whom: Whom,
}

impl Calls {
    pub(super) async fn to(socket: PathBuf, count: usize) -> Result<Self> {
        Ok(Self { client: Arc::new(Client::connect(socket).await?), whom: Whom::of(count) })
    }
}

impl Caller for Calls {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        let plugin = numbered(self.whom.next());
        host::say(&self.client, &plugin, content_bytes).await
    }
}
