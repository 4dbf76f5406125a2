//! The configuration: one YAML file, the environment, flags; checked as a whole before anything starts.
//!
//! | module | contents |
//! |---|---|
//! | `types`, `schema` | the keys, their defaults and their documentation |
//! | `layers`, `substitute` | file, environment and flags, each checked against the schema by [`talon_plugin_config::document`] |
//! | `merge` | merges them with figment |
//! | `check` | checks that no schema can express |
//! | `show`, `reference` | output for people |
//! | `diff` | the differences of two configurations |
//! | `peers`, `specs` | the configuration in the form that other modules need |
//!
//! All problems are reported together, each with its file, line and column, or its variable or flag.

mod check;
mod diff;
mod environment;
mod layers;
mod merge;
mod peers;
mod reference;
mod schema;
mod secret;
mod show;
mod specs;
mod substitute;
mod types;

use std::path::PathBuf;

use talon_plugin_config::document::origin::{Origin, Origins};

use self::merge::Merge;

pub use self::environment::{DefaultPath, DefaultPaths, Environment};
pub(crate) use self::peers::name_of;
pub use self::peers::{AllowedActions, PeerPolicy, Rights};
pub use self::reference::{EXAMPLE, write_reference};
pub use self::schema::json_schema;
pub use self::secret::{REDACTED, Secret, sounds_secret};
pub use self::specs::{CallPolicy, GuardStores};
pub use self::types::{
    Admin, Audit, AuditArguments, Breaker, Config, ConfiguredPlugin, Credential, Engine, Envelope, Grants,
    Guard, Host, Lifecycle, Log, LogFormat, Origin as PeerOrigin, Override as PluginOverride, Oversize,
    Pages, Peer, Plugins, Quarantine, Quota, QuotaOverride, Reload, Role, Sandbox, State, Tools, Traces,
};
pub use talon_plugin_config::document::origin::{KeyPath, Source};
pub use talon_plugin_config::document::problem::{Problem, Problems as ConfigErrors};
pub use talon_plugin_config::entry::SandboxMode;

/// The sources of a configuration.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The file named by `--config`. It must exist.
    pub file: Option<PathBuf>,
    /// Values from flags; a later one wins.
    pub overrides: Vec<Override>,
    /// The environment and identity of the process.
    pub environment: Environment,
}

/// One value from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The flag as messages name it: `--runtime-dir`.
    pub flag: String,
    /// The key, as in the file, its steps joined by dots: `plugins.tools.max_restarts`.
    pub key: String,
    /// The value; YAML for keys that are not scalars.
    pub value: String,
}

/// A valid configuration, with the source of each value.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    /// The file that was read; `None` if there was none.
    pub file: Option<PathBuf>,
    /// What is allowed but probably a mistake.
    pub warnings: Vec<Problem>,
    /// The sources, to load it again.
    pub options: LoadOptions,
    origins: Origins,
}

impl LoadOptions {
    /// The options of this process, without flags.
    #[must_use]
    pub fn of_process() -> Self {
        Self { file: None, overrides: Vec::new(), environment: Environment::of_process() }
    }

    /// Adds a value from a flag.
    #[must_use]
    pub fn with(mut self, flag: &str, key: &str, value: impl Into<String>) -> Self {
        self.overrides.push(Override { flag: flag.to_owned(), key: key.to_owned(), value: value.into() });
        self
    }
}

impl Loaded {
    /// The source of a key's value.
    #[must_use]
    pub fn source(&self, key: &KeyPath) -> Source {
        self.origins.get(key).map_or(Source::Default, |origin| origin.source.clone())
    }
}

/// Loads the configuration: built-in defaults, the file, the environment, flags, each overriding the ones
/// before; then checks it as a whole.
///
/// The file is `--config`, else `$TALON_CONFIG`, else `/etc/talon/talon.yaml` for root and
/// `$XDG_CONFIG_HOME/talon/talon.yaml` for others; of these only the last may be missing.
///
/// # Errors
/// All problems at once.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigErrors> {
    let around = &options.environment;
    let root = schema::config();
    let places = around.default_paths();
    let mut merge = Merge::onto(&Config::built_in(&places), path_origins(&places));
    let mut warnings = Vec::new();
    let mut file = None;
    if let Some((path, must_exist)) = layers::file_to_read(options)
        && let Some(said) = layers::file(&root, &path, must_exist, around)
    {
        merge.add(&path.to_string_lossy(), said);
        file = Some(path);
    }
    let (variables, ignored) = layers::environment(&root, around);
    warnings.extend(ignored);
    for (name, said) in variables.into_iter().chain(layers::flags(&root, &options.overrides, around)) {
        merge.add(&name, said);
    }
    let config = merge.finish(&root);
    let mut problems = merge.problems;
    let Some(config) = config else {
        return Err(ConfigErrors::new(problems).expect("finish() reports what it cannot build"));
    };
    let found = check::check(&config, around, &merge.origins);
    problems.extend(found.problems);
    warnings.extend(found.warnings);
    match ConfigErrors::new(problems) {
        Some(errors) => Err(errors),
        None => Ok(Loaded { config, file, warnings, options: options.clone(), origins: merge.origins }),
    }
}

/// The origins of defaults that come from a variable.
fn path_origins(places: &DefaultPaths) -> Origins {
    let mut origins = Origins::default();
    let known =
        [(&["runtime_dir"] as &[&str], &places.runtime_dir), (&["state", "data_dir"], &places.data_dir)];
    for (key, place) in known {
        if let Some(variable) = place.variable {
            let source = Source::Variable(variable.to_owned());
            origins.note(KeyPath::of(key), Origin { source, substituted: false, list: false });
        }
    }
    origins
}

#[cfg(test)]
mod agent_tests;
#[cfg(test)]
mod tests;
