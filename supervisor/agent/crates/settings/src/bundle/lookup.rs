//! The environment of a configuration.

use std::path::{Path, PathBuf};

use super::SettingsBundle;

/// Why a named file is not available, with its path and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileLookupError {
    /// The supervisor could not read it, or may not pass it on.
    #[error("{0}")]
    Refused(String),
    /// The settings named it only after they were collected.
    #[error("{path} was not handed over by the supervisor: run `talon reload`, which reads it anew", path = .0.display())]
    NotInBundle(PathBuf),
}

/// Environment variables and files, by lookup.
pub trait Environment {
    /// An environment variable; `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// The contents of a file.
    ///
    /// # Errors
    /// [`FileLookupError`]
    fn file(&self, path: &Path) -> Result<&[u8], FileLookupError>;
}

impl Environment for SettingsBundle {
    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).cloned()
    }

    fn file(&self, path: &Path) -> Result<&[u8], FileLookupError> {
        self.files.get(path).map(Vec::as_slice).ok_or_else(|| match self.refused.get(path) {
            Some(why) => FileLookupError::Refused(why.clone()),
            None => FileLookupError::NotInBundle(path.to_owned()),
        })
    }
}
