//! The temporary environment in which `talon exec` and `talon conformance` run a plugin without a supervisor.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use talon_plugin_config::discover;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::{MANIFEST_FILE, PluginSpec};
use talon_supervisor::config::{Config, Engine, LoadOptions};
use tempfile::TempDir;

use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::local::configuration;
use crate::local::state::scratch;

/// A temporary directory, deleted on drop, and a configuration that uses it.
pub(crate) struct ScratchEnvironment {
    pub(crate) private: TempDir,
    pub(crate) config: Arc<Config>,
    /// The name of the plugin's entry, if flags wrote one.
    entry: Option<String>,
}

/// A key of a plugin's entry, and its value in YAML, from a flag.
pub(crate) struct EntryKey {
    pub(crate) flag: &'static str,
    /// Its steps joined by dots: `cookie.key`.
    pub(crate) key: String,
    pub(crate) value: String,
}

impl ScratchEnvironment {
    /// Loads the configuration for a verb that stores nothing.
    pub(crate) fn load(verb: &'static str, global: &Global) -> Result<Self, Failure> {
        let private = scratch::dir()?;
        let config = stateless_config(&stateless_options(verb, global, private.path()))?;
        Ok(Self { private, config: Arc::new(config), entry: None })
    }

    /// The same with an entry for the plugin of this path, if there are keys for it.
    pub(crate) fn with_entry(
        verb: &'static str,
        global: &Global,
        path: &Path,
        keys: &[EntryKey],
    ) -> Result<Self, Failure> {
        let mut loaded = Self::load(verb, global)?;
        if keys.is_empty() {
            return Ok(loaded);
        }
        let path = canonical_path(path)?;
        let name = plugin_name(&path);
        // An entry of the configuration is another plugin, whatever its name.
        let taken = loaded.config.plugins.tools.plugins.contains_key(&name);
        let name = if taken { format!("{name}-exec") } else { name };
        let prefix = format!("plugins.tools.plugins.{name}");
        let mut options = stateless_options(verb, global, loaded.private.path()).with(
            verb,
            &format!("{prefix}.command"),
            path.to_string_lossy(),
        );
        for EntryKey { flag, key, value } in keys {
            options = options.with(flag, &format!("{prefix}.{key}"), value);
        }
        loaded.config = Arc::new(stateless_config(&options)?);
        loaded.entry = Some(name);
        Ok(loaded)
    }

    /// The plugin of this path: by its entry from flags, or as discovery finds it.
    pub(crate) fn plugin(&self, path: &Path) -> Result<PluginSpec, Failure> {
        match &self.entry {
            Some(name) => self.configured(name),
            None => self.discovered(path),
        }
    }

    /// The plugin as discovery finds it, linked into a directory of which it is the only entry.
    pub(crate) fn discovered(&self, path: &Path) -> Result<PluginSpec, Failure> {
        let plugins = self.private.path().join("plugins");
        let path = canonical_path(path)?;
        std::fs::create_dir(&plugins)
            .and_then(|()| symlink(&path, plugins.join(plugin_name(&path))))
            .map_err(|error| Failure::failed(format!("cannot write below {}: {error}", plugins.display())))?;
        let mut found = discover::scan(&plugins, &self.config.spec_defaults());
        if let Some(refused) = found.refused.pop() {
            return Err(Failure::new(exit::REFUSED, format!("{}: {}", path.display(), refused.reason)));
        }
        found.plugins.pop().ok_or_else(|| {
            Failure::usage(format!(
                "{} is no plugin: name a file that is executable (chmod +x), or a directory with a {}",
                path.display(),
                MANIFEST_FILE
            ))
        })
    }

    /// The plugin with this name in the configuration.
    pub(crate) fn configured(&self, name: &str) -> Result<PluginSpec, Failure> {
        let (plugins, refused) = self.config.configured_plugins();
        if let Some(spec) = plugins.into_iter().find(|spec| spec.name.as_str() == name) {
            return Ok(spec);
        }
        match refused.into_iter().find(|refused| refused.name == name) {
            Some(refused) => Err(Failure::new(exit::REFUSED, format!("{name}: {}", refused.reason))),
            None => Err(Failure::usage(format!(
                "the configuration has no plugin {name}: name one of its plugins.tools.plugins, or a PATH"
            ))),
        }
    }

    /// The names of the configured plugins that run this program or directory.
    pub(crate) fn names_of(&self, path: &Path) -> Result<Vec<&str>, Failure> {
        let path = canonical_path(path)?;
        let entries = self.config.plugins.tools.plugins.iter();
        let runs = |command: &Path| command.canonicalize().is_ok_and(|command| command == path);
        let of_path = entries.filter(|(_, entry)| entry.plugin.command.as_deref().is_some_and(runs));
        Ok(of_path.map(|(name, _)| name.as_str()).collect())
    }
}

fn stateless_options(verb: &'static str, global: &Global, private: &Path) -> LoadOptions {
    configuration::load_options(global).with(verb, "runtime_dir", private.join("run").to_string_lossy()).with(
        verb,
        "state.data_dir",
        private.join("data").to_string_lossy(),
    )
}

/// The configuration, with a store of its own: a trial run must not change a supervisor's state. If the configuration
/// turns state off, it stays off.
fn stateless_config(options: &LoadOptions) -> Result<Config, Failure> {
    let mut config = configuration::load(options)?.config;
    if config.state.engine != Engine::Off {
        config.state.engine = Engine::Sqlite;
    }
    config.state.plugins = None;
    Ok(config)
}

/// The name for a plugin of this path. A file whose name is not a valid one can still be run.
fn plugin_name(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    PluginName::from_file_name(&file).map_or_else(|_| "plugin".to_owned(), |name| name.to_string())
}

fn canonical_path(path: &Path) -> Result<std::path::PathBuf, Failure> {
    path.canonicalize().map_err(|error| {
        Failure::usage(format!("cannot use {}: {error}; name an executable file", path.display()))
    })
}

/// Limits the plugin to one process that is never restarted, with the given settings if there are any.
pub(crate) fn single_run(mut spec: PluginSpec, config: Option<&Map<String, Value>>) -> PluginSpec {
    if let Some(object) = config {
        spec.config.clone_from(object);
    }
    spec.lifecycle.restart_on_failure = false;
    spec.instances = 1;
    spec.enabled = true;
    spec
}

/// Why a word on the command line is no JSON object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonObjectError {
    #[error("not a JSON object: write it as {{\"key\": \"value\"}}")]
    OtherType,
    #[error("not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
}

/// Parses a JSON object on the command line.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>, JsonObjectError> {
    match serde_json::from_str(text)? {
        Value::Object(object) => Ok(object),
        _ => Err(JsonObjectError::OtherType),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_must_be_an_object() {
        assert_eq!(object(r#"{"a": 1}"#).unwrap()["a"], 1);
        assert!(object("[1]").unwrap_err().to_string().contains("object"));
        assert!(object("{").unwrap_err().to_string().contains("not JSON"));
    }
}
