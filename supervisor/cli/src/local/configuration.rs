//! The configuration that a verb reads.

use std::path::PathBuf;

use talon_supervisor::config::{self, ConfigErrors, LoadOptions, Loaded};

use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::show::counted;

/// The sources of a verb's configuration.
pub(crate) fn load_options(global: &Global) -> LoadOptions {
    LoadOptions { file: global.config.clone(), ..LoadOptions::of_process() }
}

/// Loads the configuration, or reports all errors in it.
pub(crate) fn load(options: &LoadOptions) -> Result<Loaded, Failure> {
    config::load(options).map_err(|errors| failure(&errors))
}

/// Where the supervisor's sockets are, or the errors that hide it; the rest of the configuration is not checked.
pub(crate) fn load_runtime_dir(options: &LoadOptions) -> Result<PathBuf, Failure> {
    config::load_runtime_dir(options).map_err(|errors| failure(&errors))
}

fn failure(errors: &ConfigErrors) -> Failure {
    let what = counted(errors.problems().len() as u64, "problem");
    Failure::new(exit::CONFIG, format!("the configuration has {what}:\n{errors}"))
}
