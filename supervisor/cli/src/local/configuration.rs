//! The configuration that a verb reads.

use talon_supervisor::config::{self, LoadOptions, Loaded};

use crate::exit;
use crate::failure::Failure;
use crate::global::Global;

/// The sources of a verb's configuration.
pub(crate) fn load_options(global: &Global) -> LoadOptions {
    LoadOptions { file: global.config.clone(), ..LoadOptions::of_process() }
}

/// Loads the configuration, or reports all errors in it.
pub(crate) fn load(options: &LoadOptions) -> Result<Loaded, Failure> {
    config::load(options).map_err(|errors| {
        let count = errors.problems().len();
        let what = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
        Failure::new(exit::CONFIG, format!("the configuration has {what}:\n{errors}"))
    })
}
