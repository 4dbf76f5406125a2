//! Scans the current state of everything that is watched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use talon_plugin::Plugin;
use talon_plugin_config::PluginName;
use talon_plugin_config::discover::{self, RejectedPlugin, ScanResult};
use talon_plugin_config::document::yaml::MAX_TEXT_BYTES;
use talon_plugin_config::spec::PluginSpec;

use super::subject::{Subject, SubjectState};
use crate::blocking::blocking;
use crate::config::lua;
use crate::config::regular_file::{self, OpenError};
use crate::config::{Config, LuaScripts};
use crate::discover::{find, is_about};
use crate::reload::Reloader;

/// The result of a scan.
#[derive(Debug, Default)]
pub(super) struct FileScan {
    pub(super) states: BTreeMap<Subject, SubjectState>,
    /// Refused plugins; `None` if no plugin is watched.
    pub(super) refused: Option<Vec<RejectedPlugin>>,
}

/// Scans all watched subjects. Reads every watched file.
pub(super) async fn scan(reloader: &Reloader) -> FileScan {
    let (config, registry) = (reloader.config(), reloader.registry().clone());
    let config_file = reloader.config_file().filter(|_| config.reload.watch).map(Path::to_owned);
    blocking(move || {
        let mut found = FileScan::default();
        if let Some(file) = config_file {
            found.states.insert(Subject::Config, file_state(&file));
        }
        if let Some(lua) = config.plugins.lua.as_ref().filter(|lua| lua.watch) {
            found.states.insert(Subject::LuaScripts, scripts_state(lua));
            found.states.insert(Subject::LuaDirectory, directory_state(&lua.scripts_dir));
        }
        let specs: Vec<_> = registry.list().iter().map(Plugin::spec).collect();
        let tools = &config.plugins.tools;
        if tools.watch || specs.iter().any(|spec| spec.watch) {
            found.refused = Some(plugins(&config, &specs, &mut found.states));
        }
        found
    })
    .await
}

fn plugins(
    config: &Config,
    registered: &[Arc<PluginSpec>],
    now: &mut BTreeMap<Subject, SubjectState>,
) -> Vec<RejectedPlugin> {
    let tools = &config.plugins.tools;
    let ScanResult { plugins, refused } = find(config);
    let lost = tools.plugin_dir.as_ref().and_then(|dir| refused.iter().find(|refused| refused.path == *dir));
    if tools.watch && tools.plugin_dir.is_some() {
        let dir = lost.map_or_else(
            || SubjectState::Present(String::new()),
            |lost| SubjectState::Refused(lost.reason.clone()),
        );
        now.insert(Subject::PluginDir, dir);
    }
    let configured = |name: &PluginName| tools.plugins.contains_key(name.as_str());
    let mut add = |name: &PluginName, how: SubjectState| {
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
            Some(RejectedPlugin { reason, .. }) => add(&old.name, SubjectState::Refused(reason.clone())),
            // If the directory cannot be read, the state of its plugins is unknown.
            None if lost.is_some() && !configured(&old.name) => add(&old.name, SubjectState::Unknown),
            None => add(&old.name, SubjectState::Gone),
        }
    }
    if tools.watch {
        let runs = |refused: &RejectedPlugin| registered.iter().any(|known| is_about(refused, &known.name));
        let dir = tools.plugin_dir.as_ref();
        let inside = |refused: &&RejectedPlugin| dir.is_some_and(|dir| refused.path.parent() == Some(dir));
        for stranger in refused.iter().filter(inside).filter(|refused| !runs(refused)) {
            now.insert(
                Subject::Unregistered(stranger.path.clone()),
                SubjectState::Refused(stranger.reason.clone()),
            );
        }
    }
    refused
}

/// Covers everything that a replacement would read. What a plugin states in a manifest is part of its spec,
/// too.
fn fingerprint(spec: &PluginSpec) -> SubjectState {
    match discover::fingerprint(spec) {
        Ok(digest) => SubjectState::Present(digest),
        Err(error) => SubjectState::Refused(error.to_string()),
    }
}

/// Which scripts there are, in their order. Without the directory nobody knows: it may be between two renames, and a reload would take
/// the filters away.
fn scripts_state(of: &LuaScripts) -> SubjectState {
    lua::scripts(of).map_or(SubjectState::Unknown, |names| SubjectState::Present(names.join("/")))
}

/// Device and inode of a directory: others after it was swapped.
fn directory_state(dir: &Path) -> SubjectState {
    match rustix::fs::stat(dir) {
        Ok(stat) => SubjectState::Present(format!("{}:{}", stat.st_dev, stat.st_ino)),
        Err(_) => SubjectState::Gone,
    }
}

fn file_state(file: &Path) -> SubjectState {
    match regular_file::read(file, MAX_TEXT_BYTES) {
        Ok(bytes) => SubjectState::Present(hex::encode(Sha256::digest(bytes))),
        Err(OpenError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => SubjectState::Gone,
        Err(error) => SubjectState::Refused(error.to_string()),
    }
}
