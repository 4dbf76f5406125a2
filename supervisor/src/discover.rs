//! Finds the plugins in the plugin directory and in the configuration.

use std::sync::Arc;

use talon_plugin::{EventKind, Events, NewEvent, Registry};
use talon_plugin_config::PluginName;
use talon_plugin_config::discover::{self, RejectedPlugin, ScanResult};
use talon_plugin_config::spec::PluginSpec;
use talon_sanitize::{Raw, sanitized};

use crate::blocking::blocking;
use crate::config::Config;

/// Registers every plugin that passes its checks, which starts it. Returns those that were refused, each with
/// the reason: one bad plugin never stops the others.
pub(crate) async fn register_all(
    config: &Arc<Config>,
    registry: &Registry,
    events: &Events,
) -> Vec<RejectedPlugin> {
    let looking = Arc::clone(config);
    // Where digests are configured, it reads whole files.
    let ScanResult { plugins, mut refused } = blocking(move || find(&looking)).await;
    for spec in plugins {
        let (name, path) = (spec.name.to_string(), plugin_path(&spec));
        if let Err(error) = registry.register(spec) {
            refused.push(RejectedPlugin { name, path, reason: error.to_string() });
        }
    }
    report_refused(&refused, events);
    refused
}

/// The configured plugins come first: of two with one name, the configured one has precedence over the
/// discovered one. Blocking.
pub fn find(config: &Config) -> ScanResult {
    let (plugins, refused) = config.configured_plugins();
    let mut all = ScanResult { plugins, refused };
    if let Some(dir) = &config.plugins.tools.plugin_dir {
        let mut found = discover::scan(dir, &config.spec_defaults());
        all.plugins.append(&mut found.plugins);
        all.refused.append(&mut found.refused);
    }
    all
}

/// The plugin of this name, by the current configuration and files. `None` if neither has it. Blocking.
pub(crate) fn find_one(config: &Config, name: &PluginName) -> Result<Option<PluginSpec>, RejectedPlugin> {
    if let Some(entry) = config.plugins.tools.plugins.get(name.as_str()) {
        let source = format!("plugins.tools.plugins.{name}");
        return discover::from_config(name, &source, &entry.plugin, &config.spec_defaults()).map(Some);
    }
    let Some(dir) = &config.plugins.tools.plugin_dir else { return Ok(None) };
    let ScanResult { plugins, refused } = discover::scan(dir, &config.spec_defaults());
    if let Some(spec) = plugins.into_iter().find(|spec| spec.name == *name) {
        return Ok(Some(spec));
    }
    refused.into_iter().find(|refused| is_about(refused, name) || refused.path == *dir).map_or(Ok(None), Err)
}

/// Whether this refusal is about the plugin of this name.
pub(crate) fn is_about(refused: &RejectedPlugin, name: &PluginName) -> bool {
    refused.name == name.as_str()
        || PluginName::from_file_name(&refused.name).is_ok_and(|of_file| of_file == *name)
}

/// Reports refused plugins, in the log and as events.
pub(crate) fn report_refused(refused: &[RejectedPlugin], events: &Events) {
    for refused in refused {
        // File names are untrusted text, and reasons quote them.
        let (name, reason) = (Raw::from(&refused.name).line(), Raw::from(&refused.reason).line());
        let path = Raw::of(refused.path.display()).line();
        tracing::warn!(plugin = ?name, %path, "refused: {reason}");
        events
            .emit(NewEvent::new(EventKind::Refused, sanitized!("{}: {}", name, reason)).field("path", path));
    }
}

fn plugin_path(spec: &PluginSpec) -> std::path::PathBuf {
    spec.directory.clone().unwrap_or_else(|| spec.program.clone())
}
