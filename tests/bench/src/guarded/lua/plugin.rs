//! The hook through guard and jail, as the agent calls it; what scripts take of memory; and from a saved file to its first answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::{Value, json};
use talon_guard::{Call, Origin, Outcome};
use talon_plugin::{Events, Plugin, Registry, State};
use talon_sanitize::{Sanitizer, Settings};
use talon_supervisor::config::{LoadOptions, load};
use talon_supervisor::dispatch::Dispatcher;

use super::script::SCRIPT;
use crate::figures::Unit;
use crate::guarded::CALL_ID;
use crate::process_stats::memory_mib;
use crate::turns::Measurement;

const NAME: &str = "lua";
const TALON: &str = "talon-lua";
/// How many scripts are loaded for the figure of their memory.
const SCRIPTS: usize = 100;
/// How long something may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the plugin may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// The plugin, in a jail, behind the guard's whole stack.
pub(super) struct LuaPlugin {
    registry: Registry,
    door: Arc<Dispatcher>,
    plugin: Plugin,
    scripts_dir: PathBuf,
    message: String,
    saved: u64,
}

impl LuaPlugin {
    /// Starts it with the script `rule`, which is measured, and `live`, which changes.
    pub(super) async fn start(config: PathBuf, scripts_dir: PathBuf, message: String) -> Result<Self> {
        save(&scripts_dir, "rule", SCRIPT)?;
        save(&scripts_dir, "live", &version(0))?;
        let loaded = load(&LoadOptions { file: Some(config), ..LoadOptions::of_process() })?;
        let config = Arc::new(loaded.config);
        let stage = Arc::new(talon_jail::Stage::from_current_exe()?);
        let events = Events::new();
        let registry = Registry::new(config.talon_plugin_settings(), stage, events.clone())?;
        let sanitizer =
            Sanitizer::new(&Settings { forbidden_patterns: config.guard.forbidden_patterns.clone() })?;
        let (mut specs, _) = config.configured_plugins();
        let door = Arc::new(Dispatcher::new(registry.clone(), config, sanitizer, events));
        let plugin = registry.register(specs.pop().context("the configuration has plugins.lua")?)?;
        plugin.settled().await;
        let snapshot = plugin.snapshot();
        ensure!(snapshot.state == State::Ready, "the plugin is not ready: {:?}", snapshot.reason);
        Ok(Self { registry, door, plugin, scripts_dir, message, saved: 0 })
    }

    /// What one of many further scripts takes: of the plugin's process and of its workers.
    pub(super) async fn memory_of_scripts(&mut self) -> Result<Measurement> {
        let (known, before) = (self.plugin.snapshot().scripts.len(), self.memory()?);
        for number in 0..SCRIPTS {
            save(&self.scripts_dir, &format!("more{number}"), SCRIPT)?;
        }
        let begin = Instant::now();
        while self.plugin.snapshot().scripts.len() < known + SCRIPTS {
            ensure!(begin.elapsed() < PATIENCE, "not all scripts are loaded");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        #[expect(clippy::cast_precision_loss, reason = "a hundred")]
        let each = (self.memory()? - before) / SCRIPTS as f64;
        Ok(Measurement::new("lua/100 scripts", TALON, "memory each", Unit::Mebibytes, each))
    }

    fn memory(&self) -> Result<f64> {
        let pid = self.plugin.snapshot().instances[0].pid.context("it has a process")?;
        let mut all = memory_mib(pid)?;
        for child in children(pid)? {
            all += memory_mib(child)?;
        }
        Ok(all)
    }

    /// Median and p99 of calls, one after the other.
    pub(super) async fn hook_times(&self, calls: usize) -> Result<[Measurement; 2]> {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let begin = Instant::now();
            let verdict = self.hook("rule", &self.message).await?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            ensure!(verdict["verdict"] == "pass", "{verdict}");
        }
        times.sort_by(f64::total_cmp);
        let told =
            |metric, time| Measurement::new("lua/whole hook, 1 KiB", TALON, metric, Unit::Milliseconds, time);
        Ok([told("p50", times[calls / 2]), told("p99", times[calls * 99 / 100])])
    }

    /// From a saved file to the first answer of it.
    pub(super) async fn save_to_live(&mut self) -> Result<Measurement> {
        self.saved += 1;
        let begin = Instant::now();
        save(&self.scripts_dir, "live", &version(self.saved))?;
        let expected = self.saved.to_string();
        while self.hook("live", "x").await?["message"] != *expected {
            ensure!(begin.elapsed() < PATIENCE, "the saved file is not live");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = begin.elapsed().as_secs_f64() * 1e3;
        Ok(Measurement::new("lua/saved file", TALON, "live", Unit::Milliseconds, took))
    }

    /// The verdict of a script's `pre_hook`.
    async fn hook(&self, script: &str, message: &str) -> Result<Value> {
        let mut call = Call::new(CALL_ID, NAME, format!("{script}-pre_hook"), Origin::System);
        call.role = Some("request_hook");
        let session =
            json!({"id": "01J00000000000000000000000", "turn": 1, "sender": "ada", "channel": "cli"});
        let asked = json!({"message": message, "session": session, "metadata": {}});
        call.set_arguments(Default::default(), &asked.to_string());
        let answer = self.door.call(call).await.map_err(|draining| anyhow!(draining))?;
        ensure!(*answer.outcome() == Outcome::Ok, "{:?}", answer.outcome());
        Ok(serde_json::from_str(&answer.into_parts().structured_content)?)
    }

    pub(super) async fn end(self) {
        self.registry.shutdown(GRACE).await;
    }
}

/// A script that says which version it is.
fn version(number: u64) -> String {
    format!("function pre_hook(ctx) ctx.message = '{number}' end")
}

/// Writes beside, and then in its place.
fn save(dir: &Path, name: &str, source: &str) -> Result<()> {
    let beside = dir.join(format!("{name}.new"));
    std::fs::write(&beside, source)?;
    Ok(std::fs::rename(beside, dir.join(format!("{name}.lua")))?)
}

/// The processes that a process has started.
fn children(pid: u32) -> Result<Vec<u32>> {
    let mut children = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("children"))?;
        children.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Ok(children)
}
