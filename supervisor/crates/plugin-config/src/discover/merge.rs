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
    let mut named = sources.manifest.into_iter().chain(sources.entry);
    if spec.foreign_service.is_none() && named.any(|entry| !entry.methods.is_empty()) {
        let problem =
            "they are of the service of a descriptor, and there is none: set descriptor, or remove them";
        return Err(CheckError::Setting { setting: "methods", problem: problem.to_owned() });
    }
    place_descriptor(&mut spec);
    Ok(spec)
}

/// A manifest's descriptor lies in the plugin's directory; any other one becomes readable for the plugin.
fn place_descriptor(spec: &mut PluginSpec) {
    let Some(foreign) = &mut spec.foreign_service else { return };
    let Some(directory) = &spec.directory else {
        spec.sandbox.fs.read.get_or_insert_default().push(foreign.descriptor.clone());
        return;
    };
    foreign.descriptor = directory.join(&foreign.descriptor);
    if !foreign.descriptor.starts_with(directory) {
        spec.sandbox.fs.read.get_or_insert_default().push(foreign.descriptor.clone());
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
