//! Merges the settings of one plugin: its manifest, its entry in the config file, the overrides. A later one
//! wins.

use super::check::CheckError;
use super::defaults::SpecDefaults;
use super::permissions;
use crate::entry::PluginEntry;
use crate::spec::PluginSpec;

/// The settings from the plugin's manifest and from its entry in the config file.
#[derive(Clone, Copy, Default)]
pub(super) struct SettingSources<'a> {
    pub(super) manifest: Option<&'a PluginEntry>,
    pub(super) entry: Option<&'a PluginEntry>,
}

/// Applies all settings for a plugin to the defaults in `spec`.
pub(super) fn merge_settings(
    mut spec: PluginSpec,
    sources: SettingSources<'_>,
    defaults: &SpecDefaults,
) -> Result<PluginSpec, CheckError> {
    let over = defaults.overrides.get(spec.name.as_str());
    let operator = [sources.entry.map(|entry| &entry.settings), over];
    if let Some(manifest) = sources.manifest {
        let wishes = permissions::excess_requests(&manifest.settings, operator, &spec);
        if !wishes.is_empty() {
            return Err(CheckError::NotPermitted { wishes });
        }
        manifest.apply(&mut spec);
        // The operator wins over the author: a general timeout of the operator also replaces the author's
        // timeouts for actions.
        if operator.iter().flatten().any(|settings| settings.calls.timeout.is_some()) {
            spec.calls.action_timeouts.clear();
        }
    }
    if let Some(entry) = sources.entry {
        entry.apply(&mut spec);
    }
    if let Some(over) = over {
        over.apply(&mut spec);
    }
    Ok(spec)
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
