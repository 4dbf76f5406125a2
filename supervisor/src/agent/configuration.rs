//! The agent's part of the configuration: its sections, and the variables and files that they refer to.

use std::sync::{Arc, LazyLock};

use talon_agent_settings::{BundleError, Settings, SettingsBundle, read_file};

use super::blocking_pool::BlockingPool;
use super::supervisor::AgentSupervisor;
use super::visible_files::visible_files;
use crate::config::{Config, read_confirm_patterns};

static FILES: LazyLock<BlockingPool> = LazyLock::new(BlockingPool::new);

/// Collects the agent's configuration and passes it on. Returns the problems, each with what to do: the agent
/// runs all the same, without the parts that could not be read. `resend`: also if nothing changed.
pub(crate) async fn configure(config: &Arc<Config>, keeper: &AgentSupervisor, resend: bool) -> Vec<String> {
    let (config, extensions) = (Arc::clone(config), config.extensions_as_routed().to_bytes());
    // It reads files: larger ones take time, and reading from an unreachable server never returns.
    let (bytes, mut problems) = match FILES.run(move || collect(&config)).await {
        Ok(gathered) => gathered,
        Err(error) => {
            return vec![format!(
                "the files that models.providers name cannot be read ({error}), and the agent keeps the settings that it has: see whether their file system answers, then `talon reload`"
            )];
        }
    };
    match bytes {
        Ok(bytes) => keeper.configure(bytes, extensions, resend),
        Err(error) => problems.push(error.to_string()),
    }
    problems
}

/// Blocking.
fn collect(config: &Config) -> (Result<Vec<u8>, BundleError>, Vec<String>) {
    let Config { agent, models, orchestrator, shadow, .. } = config;
    let mut settings = Settings {
        agent: agent.clone(),
        models: models.clone(),
        orchestrator: orchestrator.clone(),
        shadow: shadow.clone(),
    };
    settings.shadow.visible = shadow.visible.clone().or_else(|| visible_files(config));
    let (mut handed, mut problems) =
        SettingsBundle::collect(&settings, &|name| std::env::var(name).ok(), &read_file);
    if let Some(path) = &agent.confirm.pattern_file {
        // It was in order when the configuration was checked; without it every call asks that could match.
        match read_confirm_patterns(path) {
            Ok(file) => handed.confirm_patterns = Some(file),
            Err(error) => problems.push(format!("agent.confirm.pattern_file: {}: {error}", path.display())),
        }
    }
    (handed.to_bytes(), problems)
}
