//! Through `host.sock` to a plugin that returns what it is sent, like the MCP servers in the same suite.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, ensure};
use talon_client::Client;

use super::host;
use crate::load::Caller;

/// The action, and its argument.
const ECHO: (&str, &str) = ("echo", "text");

#[derive(Clone)]
pub(super) struct EchoCaller {
    client: Arc<Client>,
    plugin: Arc<str>,
}

impl EchoCaller {
    pub(super) async fn to(socket: PathBuf, plugin: String) -> Result<Self> {
        Ok(Self { client: Arc::new(Client::connect(socket).await?), plugin: plugin.into() })
    }
}

impl Caller for EchoCaller {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        let text = crate::content::text(content_bytes);
        let answer = host::call(&self.client, &self.plugin, ECHO.0, (ECHO.1.to_owned(), text)).await?;
        ensure!(answer.content.len() == content_bytes, "{} bytes came", answer.content.len());
        Ok(())
    }
}
