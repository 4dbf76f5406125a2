//! Scans the current state of everything that is watched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use talon_plugin::discover::{self, Discovered, Refused};
use talon_plugin::spec::PluginSpec;
use talon_plugin::{Plugin, PluginName};

use super::super::discover::{find, is_about};
use super::super::reload::{Reloader, blocking};
use super::Subject;
use crate::config::Config;

/// The state of a watched subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Now {
    /// It exists, with this digest.
    Is(String),
    /// It exists, but is refused for this reason.
    Refused(String),
    Gone,
    /// Unknown, because its directory cannot be read.
    Unknown,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) how: BTreeMap<Subject, Now>,
    /// Refused plugins; `None` if no plugin is watched.
    pub(super) refused: Option<Vec<Refused>>,
}

/// Scans all watched subjects. Reads every watched file.
pub(super) async fn look(reloader: &Reloader) -> Found {
    let (config, registry) = (reloader.config(), reloader.registry().clone());
    let config_file = reloader.config_file().filter(|_| config.reload.watch).map(Path::to_owned);
    blocking(move || {
        let mut found = Found::default();
        if let Some(file) = config_file {
            found.how.insert(Subject::Config, file_now(&file));
        }
        let specs: Vec<_> = registry.list().iter().map(Plugin::spec).collect();
        let tools = &config.plugins.tools;
        if tools.watch || specs.iter().any(|spec| spec.watch) {
            found.refused = Some(plugins(&config, &specs, &mut found.how));
        }
        found
    })
    .await
}

fn plugins(
    config: &Config,
    registered: &[Arc<PluginSpec>],
    now: &mut BTreeMap<Subject, Now>,
) -> Vec<Refused> {
    let tools = &config.plugins.tools;
    let Discovered { plugins, refused } = find(config);
    let lost = tools.plugin_dir.as_ref().and_then(|dir| refused.iter().find(|refused| refused.path == *dir));
    if tools.watch && tools.plugin_dir.is_some() {
        let dir = lost.map_or_else(|| Now::Is(String::new()), |lost| Now::Refused(lost.reason.clone()));
        now.insert(Subject::PluginDir, dir);
    }
    let configured = |name: &PluginName| tools.plugins.contains_key(name.as_str());
    let mut add = |name: &PluginName, how: Now| {
        // Of two with one name, the configured one has precedence, and it is found first.
        now.entry(Subject::Plugin(name.clone())).or_insert(how);
    };
    for spec in &plugins {
        let is_known = registered.iter().any(|known| known.name == spec.name);
        if spec.watch && (is_known || (tools.watch && !configured(&spec.name))) {
            add(&spec.name, fingerprint(spec));
        }
    }
    for old in registered.iter().filter(|spec| spec.watch) {
        match refused.iter().find(|refused| is_about(refused, &old.name)) {
            Some(Refused { reason, .. }) => add(&old.name, Now::Refused(reason.clone())),
            // If the directory cannot be read, the state of its plugins is unknown.
            None if lost.is_some() && !configured(&old.name) => add(&old.name, Now::Unknown),
            None => add(&old.name, Now::Gone),
        }
    }
    if tools.watch {
        let runs = |refused: &Refused| registered.iter().any(|known| is_about(refused, &known.name));
        let dir = tools.plugin_dir.as_ref();
        let inside = |refused: &&Refused| dir.is_some_and(|dir| refused.path.parent() == Some(dir));
        for stranger in refused.iter().filter(inside).filter(|refused| !runs(refused)) {
            now.insert(Subject::Stranger(stranger.path.clone()), Now::Refused(stranger.reason.clone()));
        }
    }
    refused
}

/// Covers everything that a replacement would read. What a plugin states in a manifest is part of its spec,
/// too.
fn fingerprint(spec: &PluginSpec) -> Now {
    match discover::fingerprint(spec) {
        Ok(digest) => Now::Is(digest),
        Err(reason) => Now::Refused(reason),
    }
}

fn file_now(file: &Path) -> Now {
    match std::fs::read(file) {
        Ok(bytes) => Now::Is(hex::encode(Sha256::digest(bytes))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Now::Gone,
        Err(error) => Now::Refused(error.to_string()),
    }
}
