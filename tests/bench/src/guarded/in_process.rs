//! Guard and plugin client in the caller's process, as in a program that embeds Talon instead of using a
//! supervisor. The stack is the supervisor's, with all of its layers, counters and events.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use talon_guard::{Call, Origin, Outcome};
use talon_supervisor::config::{LoadOptions, load};
use talon_supervisor::dispatch::Dispatcher;

use talon_plugin::{Events, Registry, State};
use talon_sanitize::{Sanitizer, Settings};

use super::{ACTION, CALL_ID, PLUGIN};
use crate::load::Caller;

/// How long the plugin may take to end afterwards; it has nothing to finish.
const GRACE: Duration = Duration::from_secs(2);

pub(super) async fn serve(config: PathBuf) -> Result<()> {
    let loaded = load(&LoadOptions { file: Some(config), ..LoadOptions::of_process() })?;
    let config = Arc::new(loaded.config);
    let stage = Arc::new(talon_jail::Stage::from_current_exe()?);
    let events = Events::new();
    let registry = Registry::new(config.talon_plugin_settings(), stage, events.clone())?;
    let patterns = Settings { forbidden_patterns: config.guard.forbidden_patterns.clone() };
    let sanitizer = Sanitizer::new(&patterns)?;
    let (mut specs, _) = config.configured_plugins();
    let door = Arc::new(Dispatcher::new(registry.clone(), config, sanitizer, events));
    let plugin = registry.register(specs.pop().context("the configuration has a plugin")?)?;
    plugin.settled().await;
    let snapshot = plugin.snapshot();
    ensure!(snapshot.state == State::Ready, "the plugin is not ready: {:?}", snapshot.reason);
    let served = crate::worker::serve(InProcessCaller(door)).await;
    registry.shutdown(GRACE).await;
    served
}

#[derive(Clone)]
struct InProcessCaller(Arc<Dispatcher>);

impl Caller for InProcessCaller {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        let mut call = Call::new(CALL_ID, PLUGIN, ACTION, Origin::Program);
        call.args.insert("bytes".to_owned(), content_bytes.to_string());
        let answer = self.0.call(call).await.map_err(|draining| anyhow!(draining))?;
        ensure!(*answer.outcome() == Outcome::Ok, "{:?}", answer.outcome());
        let content = answer.into_parts().content;
        ensure!(content.len() == content_bytes, "{} bytes came", content.len());
        Ok(())
    }
}
