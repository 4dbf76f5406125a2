//! The environment of a configuration.

use std::path::Path;

use super::SettingsBundle;

/// Environment variables and files, by lookup.
pub trait Environment {
    /// An environment variable; `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// The contents of a file.
    ///
    /// # Errors
    /// A sentence with the file's path that says why it is missing and what to do.
    fn file(&self, path: &Path) -> Result<&[u8], String>;
}

impl Environment for SettingsBundle {
    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).cloned()
    }

    fn file(&self, path: &Path) -> Result<&[u8], String> {
        let why = || {
            let unknown = || {
                let path = path.display();
                format!(
                    "{path} was not handed over by the supervisor: run `talon reload`, which reads it anew"
                )
            };
            self.refused.get(path).cloned().unwrap_or_else(unknown)
        };
        self.files.get(path).map(Vec::as_slice).ok_or_else(why)
    }
}
