//! The bundle that the supervisor sends to the agent: the settings, with the files and variables that they
//! name.
//!
//! The agent's user cannot read the operator's files, and its environment has only what services get, so that
//! access to the configuration does not imply access to its keys. So the supervisor looks up what the
//! settings name, and nothing else, and sends it.

mod bytes;
mod file;
mod keys;
mod lookup;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::{ConfirmPatternFile, ProviderEntry, Settings};

pub use bytes::{BundleError, MAX_BUNDLE_BYTES};
pub use file::{NamedFile, NamedFileError, read_file};
pub use keys::{FoundKey, KeyError, find_keys};
pub use lookup::{Environment, FileLookupError};

use file::{FileUse, MAX_FILES, MAX_FILES_BYTES};

/// The variables for proxies. They replace a library's own lookup, and include both spellings.
pub const PROXY_VARIABLES: [&str; 8] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// The longest value of a variable. 16 KiB: a key has 4 KiB at most, and a `NO_PROXY` with some hundred names
/// fits. A longer one is left out, with a problem that names it.
const MAX_VARIABLE_BYTES: usize = 16 << 10;
/// The most variables. 512: far more than anyone has keys. Further ones are left out, with a problem.
const MAX_VARIABLES: usize = 512;
/// Everything that the agent is given: its settings, and the environment variables and files that they name.
///
/// Providers are built from it alone. Its `Debug` output shows neither values nor contents; see
/// [`SettingsBundle::to_bytes`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SettingsBundle {
    /// The operator's settings.
    pub settings: Settings,
    /// The variables that the settings name, and those for proxies, if they are set.
    pub environment: BTreeMap<String, String>,
    /// The contents of the files that the settings name.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The patterns of `agent.confirm.pattern_file`, which the supervisor reads as a part of the configuration.
    pub confirm_patterns: Option<ConfirmPatternFile>,
    /// The named files that are not in `files`, each with a sentence that says why and what to do.
    pub refused: BTreeMap<PathBuf, String>,
}

impl SettingsBundle {
    /// Looks up what the settings name.
    ///
    /// `env` looks up a variable, `read` a file ([`read_file`] outside of tests). A file with keys that
    /// others can read is left out. Also returns one sentence for each problem, with what to do. A provider
    /// with a problem cannot be asked; the others can.
    #[must_use]
    pub fn collect(
        settings: &Settings,
        env: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&Path) -> std::io::Result<NamedFile>,
    ) -> (Self, Vec<String>) {
        let mut gathering = BundleCollector {
            bundle: Self { settings: settings.clone(), ..Self::default() },
            bytes: 0,
            env,
            read,
            problems: Vec::new(),
        };
        for name in PROXY_VARIABLES {
            gathering.variable(name);
        }
        for (name, entry) in &settings.models.providers.0 {
            gathering.entry(name, entry);
        }
        (gathering.bundle, gathering.problems)
    }
}

/// Shows names only: the values are secrets.
impl fmt::Debug for SettingsBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: BTreeMap<_, _> = self.files.iter().map(|(path, bytes)| (path, bytes.len())).collect();
        f.debug_struct("SettingsBundle")
            .field("settings", &self.settings)
            .field("environment", &self.environment.keys().collect::<Vec<_>>())
            .field("files", &sizes)
            .field("refused", &self.refused)
            .finish()
    }
}

/// The state of a collection.
struct BundleCollector<'a> {
    bundle: SettingsBundle,
    /// The bytes of all files so far.
    bytes: usize,
    env: &'a dyn Fn(&str) -> Option<String>,
    read: &'a dyn Fn(&Path) -> std::io::Result<NamedFile>,
    problems: Vec<String>,
}

impl BundleCollector<'_> {
    fn entry(&mut self, provider: &str, entry: &ProviderEntry) {
        let mut wrong = Vec::new();
        for source in entry.sources() {
            match &source {
                crate::KeySource::Env(name) => self.variable(name),
                crate::KeySource::File(path) => self.file(path, FileUse::Keys),
            }
            // Parsed here as the agent will, so that starting or reloading reports a bad key at once.
            wrong.extend(find_keys(&source, &self.bundle).err().map(|error| error.to_string()));
        }
        for (path, used) in [(&entry.ca_file, FileUse::Certificates), (&entry.file, FileUse::Script)] {
            let Some(path) = path else { continue };
            self.file(path, used);
            wrong.extend(self.bundle.refused.get(path).cloned());
        }
        self.problems.extend(wrong.into_iter().map(|message| format!("provider {provider}: {message}")));
    }

    fn variable(&mut self, name: &str) {
        let Some(value) = (self.env)(name).filter(|value| !value.trim().is_empty()) else { return };
        if self.bundle.environment.contains_key(name) {
            return;
        }
        if value.len() > MAX_VARIABLE_BYTES {
            let message = format!(
                "the environment variable {name} is longer than {MAX_VARIABLE_BYTES} bytes and is left out: shorten it"
            );
            self.problems.push(message);
        } else if self.bundle.environment.len() >= MAX_VARIABLES {
            let message = format!(
                "the environment variable {name} is left out, since providers name more than {MAX_VARIABLES}: remove some"
            );
            self.problems.push(message);
        } else {
            self.bundle.environment.insert(name.to_owned(), value);
        }
    }

    fn file(&mut self, path: &Path, used: FileUse) {
        // A file that is named twice is read once. If it contains keys it is checked each time: the first use
        // may not have required it.
        let known = self.bundle.files.contains_key(path) || self.bundle.refused.contains_key(path);
        if known && used != FileUse::Keys {
            return;
        }
        match self.read_checked(path, used) {
            Ok(bytes) => {
                self.bytes += bytes.len();
                self.bundle.refused.remove(path);
                let before = self.bundle.files.insert(path.to_owned(), bytes);
                self.bytes -= before.map_or(0, |before| before.len());
            }
            Err(error) => {
                let before = self.bundle.files.remove(path);
                self.bytes -= before.map_or(0, |before| before.len());
                self.bundle.refused.insert(path.to_owned(), error.to_string());
            }
        }
    }

    fn read_checked(&self, path: &Path, used: FileUse) -> Result<Vec<u8>, NamedFileError> {
        let found = (self.read)(path)
            .map_err(|source| NamedFileError::Unreadable { path: path.to_owned(), source })?;
        let bytes = file::check_contents(path, used, found)?;
        let is_new = !self.bundle.files.contains_key(path);
        if is_new
            && (self.bundle.files.len() >= MAX_FILES
                || self.bytes.saturating_add(bytes.len()) > MAX_FILES_BYTES)
        {
            return Err(NamedFileError::TooMany(path.to_owned()));
        }
        Ok(bytes)
    }
}
