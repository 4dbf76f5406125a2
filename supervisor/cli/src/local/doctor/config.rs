//! Checks of the configuration: its source, its warnings, and the plugins that it refuses.

use talon_supervisor::config::Loaded;
use talon_supervisor::serve::find_plugins;

use super::check::{Check, CheckBuilder, Section};

const CHECK: CheckBuilder = CheckBuilder(Section::Configuration, "config");

pub(super) fn checks(loaded: &Loaded) -> Vec<Check> {
    let from =
        loaded.file.as_ref().map_or("none: built-in defaults".into(), |file| file.display().to_string());
    let mut checks = vec![CHECK.ok(from)];
    checks.extend(loaded.warnings.iter().map(|warning| CHECK.warn(warning.to_string())));
    let found = find_plugins(&loaded.config);
    let refused = CheckBuilder(Section::Configuration, "plugins");
    for plugin in &found.refused {
        let says = format!("{} is refused: {} ({})", plugin.name, plugin.reason, plugin.path.display());
        checks.push(refused.warn(says));
    }
    if found.refused.is_empty() {
        checks.push(refused.ok(format!("{} found, none refused", found.plugins.len())));
    }
    checks
}
