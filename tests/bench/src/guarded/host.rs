//! Through `host.sock`, with the client library of the command line, the agent and the MCP server.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, ensure};
use talon_client::Client;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome};

use super::{ACTION, CALL_ID, PLUGIN};
use crate::load::Caller;

#[derive(Clone)]
pub(super) struct HostCaller(Arc<Client>);

impl HostCaller {
    pub(super) async fn to(socket: PathBuf) -> Result<Self> {
        Ok(Self(Arc::new(Client::connect(socket).await?)))
    }
}

impl Caller for HostCaller {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        say(&self.0, PLUGIN, content_bytes).await
    }
}

/// Asks a plugin for this many bytes.
pub(super) async fn say(client: &Client, plugin: &str, content_bytes: usize) -> Result<()> {
    let bytes = ("bytes".to_owned(), content_bytes.to_string());
    let answer = call(client, plugin, ACTION, bytes).await?;
    ensure!(answer.content.len() == content_bytes, "{} bytes came", answer.content.len());
    Ok(())
}

/// Calls an action that takes one argument.
pub(super) async fn call(
    client: &Client,
    plugin: &str,
    action: &str,
    argument: (String, String),
) -> Result<ExecuteResponse> {
    let request = ExecuteRequest {
        call_id: CALL_ID.to_owned(),
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        args: [argument].into(),
        ..ExecuteRequest::default()
    };
    let answer = client.execute(request).await?;
    ensure!(answer.outcome() == Outcome::Ok, "{}: {}", answer.reason, answer.error);
    Ok(answer)
}
