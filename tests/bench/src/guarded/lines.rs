//! A plugin that logs, and a supervisor that reads every line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use talon_client::Client;
use talon_proto::host::{GetPluginRequest, PluginCounters};

use super::{PLUGIN, host};
use crate::load::Caller;

/// Lines of one call: about a dozen times the capacity of a pipe, so that the plugin cannot finish long
/// before its reader.
pub const LINES: usize = 10_000;

/// The interval for polling a counter, which has no notification; a tenth or less of the time for so many
/// lines.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

#[derive(Clone)]
pub(super) struct LogCaller(Arc<Client>);

impl LogCaller {
    pub(super) async fn of(socket: PathBuf) -> Result<Self> {
        Ok(Self(Arc::new(Client::connect(socket).await?)))
    }

    async fn counters(&self) -> Result<PluginCounters> {
        let request = GetPluginRequest { name: PLUGIN.to_owned(), for_model: false };
        let answer = self.0.host().get_plugin(request).await?.into_inner();
        answer.plugin.and_then(|plugin| plugin.counters).context("a plugin has counters")
    }
}

impl Caller for LogCaller {
    /// All lines of one turn.
    async fn call(&mut self, _: usize) -> Result<()> {
        let before = self.counters().await?;
        host::call(&self.0, PLUGIN, "log", ("lines".to_owned(), LINES.to_string())).await?;
        let mut look = tokio::time::interval(POLL_INTERVAL);
        loop {
            let now = self.counters().await?;
            ensure!(now.log_lines_dropped == before.log_lines_dropped, "lines were dropped");
            if now.log_lines >= before.log_lines + LINES as u64 {
                return Ok(());
            }
            look.tick().await;
        }
    }
}
