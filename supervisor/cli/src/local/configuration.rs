//! The configuration that a verb reads.

use talon_supervisor::config::{self, LoadOptions, Loaded};

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
    config::load(options).map_err(|errors| {
        let what = counted(errors.problems().len() as u64, "problem");
        Failure::new(exit::CONFIG, format!("the configuration has {what}:\n{errors}"))
    })
}
