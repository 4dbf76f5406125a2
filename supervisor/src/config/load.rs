//! Loads the configuration: reads the sources, merges them and checks the result.

use std::path::PathBuf;

use talon_plugin_config::document::origin::{KeyPath, Origin, Origins, Source};
use talon_plugin_config::document::problem::{Problem, Problems as ConfigErrors};
use talon_plugin_config::document::walk::WalkResult;

use super::environment::DefaultPaths;
use super::merge::Merge;
use super::options::LoadOptions;
use super::overlay::{self, OverlayUse};
use super::types::Config;
use super::{check, layers, lua, schema};

/// A valid configuration, with the source of each value.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    /// The file that was read; `None` if there was none.
    pub file: Option<PathBuf>,
    /// Whether the file says something: it exists and has a key with a value. An editor that saves in place,
    /// or a full disk, leaves an empty one.
    pub file_has_values: bool,
    /// Where the overlay is, if there is one; `None` if it is ignored.
    pub overlay: Option<PathBuf>,
    /// What is allowed but probably a mistake.
    pub warnings: Vec<Problem>,
    /// The sources, to load it again.
    pub options: LoadOptions,
    pub(super) origins: Origins,
}

impl Loaded {
    /// The same with the values that are in force: places are those of what was read.
    pub(crate) fn in_force(&self, config: Config) -> Self {
        Self { config, ..self.clone() }
    }

    /// The source of a key's value.
    #[must_use]
    pub fn source(&self, key: &KeyPath) -> Source {
        self.origins.get(key).map_or(Source::Default, |origin| origin.source.clone())
    }
}

/// Loads the configuration: built-in defaults, the file, the overlay, the environment, flags, each overriding the
/// ones before; then checks it as a whole.
///
/// The file is `--config`, else `$TALON_CONFIG`, else `/etc/talon/talon.yaml` for root and
/// `$XDG_CONFIG_HOME/talon/talon.yaml` for others; of these only the last may be missing.
///
/// # Errors
/// All problems at once.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigErrors> {
    let around = &options.environment;
    let Sources { mut merge, mut warnings, file, file_has_values, overlay } = read(options);
    let config = merge.finish(schema::shared());
    let mut problems = merge.problems;
    let Some(mut config) = config else {
        return Err(ConfigErrors::new(problems).expect("finish() reports what it cannot build"));
    };
    let found = check::check(&config, around, &merge.origins);
    problems.extend(found.problems);
    warnings.extend(found.warnings);
    lua::expand(&mut config);
    match ConfigErrors::new(problems) {
        Some(errors) => Err(errors),
        None => Ok(Loaded {
            config,
            file,
            file_has_values,
            overlay,
            warnings,
            options: options.clone(),
            origins: merge.origins,
        }),
    }
}

/// The directory of the supervisor's sockets, from the sources of [`load`], for its clients.
///
/// What is wrong with other keys is the supervisor's: its secrets, such as an unset `${NAME}`, are not for clients.
///
/// # Errors
/// What is wrong with the key, or with the file as a whole.
pub fn load_runtime_dir(options: &LoadOptions) -> Result<PathBuf, ConfigErrors> {
    // The overlay names no directories, and clients may not read it.
    let options = LoadOptions { overlay: OverlayUse::Ignore, ..options.clone() };
    let mut merge = read(&options).merge;
    let config = merge.finish(schema::shared());
    let (top, key) = (KeyPath::top(), KeyPath::of(&["runtime_dir"]));
    let counts = |problem: &Problem| config.is_none() || problem.key == top || problem.key == key;
    match (ConfigErrors::new(merge.problems.into_iter().filter(counts).collect()), &config) {
        (None, Some(config)) => Ok(config.runtime_dir.clone()),
        (errors, _) => Err(errors.expect("finish() reports what it cannot build")),
    }
}

/// All sources, merged.
struct Sources {
    merge: Merge,
    warnings: Vec<Problem>,
    file: Option<PathBuf>,
    file_has_values: bool,
    overlay: Option<PathBuf>,
}

fn read(options: &LoadOptions) -> Sources {
    let around = &options.environment;
    let root = schema::shared();
    let places = around.default_paths();
    let defaults = Config::built_in(&places);
    let mut merge = Merge::onto(&defaults, path_origins(&places));
    let (mut file, mut file_has_values) = (None, false);
    let mut of_file = WalkResult::default();
    if let Some((path, must_exist)) = layers::file_to_read(options)
        && let Some(said) = layers::file(root, &path, must_exist, around)
    {
        file_has_values = !said.values.is_empty();
        of_file = said;
        file = Some(path);
    }
    let (variables, mut warnings) = layers::environment(root, around);
    let flags = layers::flags(root, &options.overrides, around);
    let sources: Vec<&WalkResult> = [&of_file].into_iter().chain(&variables).chain(&flags).collect();
    let overlay = overlay::layer::layer(root, &options.overlay, &defaults, &sources);
    warnings.extend(overlay.warnings);
    for said in [of_file, overlay.read].into_iter().chain(variables).chain(flags) {
        merge.add(said);
    }
    Sources { merge, warnings, file, file_has_values, overlay: overlay.path }
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
