//! Finds the plugins in the plugin directory and in the configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use talon_plugin::{EventKind, Events, NewEvent, Registry};
use talon_plugin_config::PluginName;
use talon_plugin_config::discover::{self, RejectedPlugin, ScanResult};
use talon_plugin_config::spec::PluginSpec;
use talon_sanitize::nearest;
use talon_sanitize::{Raw, sanitized};

use crate::blocking::blocking;
use crate::config::{Config, KeyPath, Loaded, Problem};

/// Registers every plugin that passes its checks, which starts it. Returns those that were refused, each with
/// the reason (one bad plugin never stops the others), and all names that were found.
pub(crate) async fn register_all(
    config: &Arc<Config>,
    registry: &Registry,
    events: &Events,
) -> (Vec<RejectedPlugin>, FoundNames) {
    let looking = Arc::clone(config);
    // Where digests are configured, it reads whole files.
    let found = blocking(move || find(&looking)).await;
    let names = FoundNames::of(&found, config);
    let ScanResult { plugins, mut refused } = found;
    // The one that keeps the others' state comes first.
    let backend = config.state.storage_backend().map(|entry| entry.target().0.to_owned());
    let (first, others): (Vec<_>, Vec<_>) =
        plugins.into_iter().partition(|spec| backend.as_deref() == Some(spec.name.as_str()));
    for spec in first.into_iter().chain(others) {
        let (name, path) = (spec.name.to_string(), plugin_path(&spec));
        if let Err(error) = registry.register(spec) {
            refused.push(RejectedPlugin { name, path, reason: error.to_string() });
        }
    }
    report_refused(&refused, events);
    (refused, names)
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

/// The names that a scan found, for [`unknown_overrides`].
#[derive(Debug)]
pub struct FoundNames {
    plugins: BTreeSet<String>,
    refused: Vec<RejectedPlugin>,
    /// Whether all names are known: not if `plugin_dir` could not be read.
    complete: bool,
}

impl FoundNames {
    /// The names of [`find`]'s result.
    #[must_use]
    pub fn of(found: &ScanResult, config: &Config) -> Self {
        let dir = config.plugins.tools.plugin_dir.as_ref();
        Self {
            plugins: found.plugins.iter().map(|spec| spec.name.to_string()).collect(),
            complete: !found.refused.iter().any(|refused| dir == Some(&refused.path)),
            refused: found.refused.clone(),
        }
    }

    fn contains(&self, name: &str) -> bool {
        let refused = |name: &PluginName| self.refused.iter().any(|refused| is_about(refused, name));
        self.plugins.contains(name) || PluginName::new(name).is_ok_and(|name| refused(&name))
    }
}

/// Overrides of plugins that do not exist, which change nothing: mostly a name with a typing error, whose
/// plugin then runs without its limits.
#[must_use]
pub fn unknown_overrides(loaded: &Loaded, found: &FoundNames) -> Vec<Problem> {
    let overrides = loaded.config.plugins.tools.overrides.keys();
    let unknown = overrides.filter(|name| found.complete && !found.contains(name));
    let problem = |name: &String| {
        let key = KeyPath::of(&["plugins", "tools", "overrides", name]);
        let help = match nearest(name, found.plugins.iter().map(String::as_str)).first() {
            Some(near) => format!("did you mean {near}?"),
            None => "correct the name, or remove it".to_owned(),
        };
        Problem::new(loaded.source(&key), key, "there is no such plugin, so this has no effect").help(help)
    };
    unknown.map(problem).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LoadOptions, load};

    fn loaded(text: &str) -> (tempfile::TempDir, Loaded) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("talon.yaml");
        std::fs::write(&file, text).unwrap();
        let options = LoadOptions {
            file: Some(file),
            overlay: crate::config::OverlayUse::Ignore,
            ..LoadOptions::of_process()
        };
        (dir, load(&options).unwrap())
    }

    // Promises: CONF-22
    #[test]
    fn overrides_of_no_plugin_are_warned_of_with_the_nearest_name() {
        let (_dir, loaded) = loaded(
            "plugins: { tools: { plugins: { gitlab: { command: /bin/sh }, gone: { command: /nowhere/gone } }, \
             overrides: { gitlb: { timeout: 1s }, gitlab: { timeout: 1s }, gone: { timeout: 1s }, other: { timeout: 1s } } } }",
        );
        let names = FoundNames::of(&find(&loaded.config), &loaded.config);
        let warnings: Vec<String> =
            unknown_overrides(&loaded, &names).iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(
            warnings[0].contains("plugins.tools.overrides.gitlb")
                && warnings[0].contains("did you mean gitlab?")
        );
        assert!(warnings[0].contains("talon.yaml:1:"), "{warnings:?}");
        assert!(warnings[1].contains("plugins.tools.overrides.other") && warnings[1].contains("remove it"));
    }

    #[test]
    fn without_the_plugin_directory_no_name_is_known_to_be_wrong() {
        let (_dir, loaded) =
            loaded("plugins: { tools: { plugin_dir: nowhere, overrides: { gitlab: { timeout: 1s } } } }");
        let names = FoundNames::of(&find(&loaded.config), &loaded.config);
        assert_eq!(unknown_overrides(&loaded, &names), []);
    }
}
