//! The sources of a configuration.

use std::path::PathBuf;

use super::environment::Environment;
use super::overlay::OverlayUse;

/// The sources of a configuration.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The file named by `--config`. It must exist.
    pub file: Option<PathBuf>,
    /// Values from flags; a later one wins.
    pub overrides: Vec<Override>,
    /// The environment and identity of the process.
    pub environment: Environment,
    /// What is taken of the overlay.
    pub overlay: OverlayUse,
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

impl LoadOptions {
    /// The options of this process, without flags.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            file: None,
            overrides: Vec::new(),
            environment: Environment::of_process(),
            overlay: OverlayUse::Read,
        }
    }

    /// Adds a value from a flag.
    #[must_use]
    pub fn with(mut self, flag: &str, key: &str, value: impl Into<String>) -> Self {
        self.overrides.push(Override { flag: flag.to_owned(), key: key.to_owned(), value: value.into() });
        self
    }
}
