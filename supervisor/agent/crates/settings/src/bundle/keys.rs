//! Reads API keys from the environment or a file; never from the configuration itself, which is shown and
//! copied.

use std::path::PathBuf;

use super::{Environment, FileLookupError};
use crate::{KeySource, Secret};

/// The longest key. 4 KiB: keys have some 50 to 200 bytes, tokens of a gateway up to 2,000.
const MAX_KEY_BYTES: usize = 4096;

/// Why a source has no usable key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The variable is not set.
    #[error(
        "the environment variable {0} is not set or empty: set it for the supervisor, which hands it to the agent, or name another one"
    )]
    NotSet(String),
    /// The file is not available, for instance since others can read it.
    #[error(transparent)]
    File(#[from] FileLookupError),
    /// The file is not text.
    #[error("{path} holds no text: is it the file with the keys?", path = .0.display())]
    NoText(PathBuf),
    /// The file contains no key.
    #[error("{path} holds no key: write one on a line of its own", path = .0.display())]
    Empty(PathBuf),
    /// The text cannot be a key.
    #[error(
        "what {0} holds is no key: it has spaces or other characters that none has, or more than {MAX_KEY_BYTES} bytes"
    )]
    Malformed(String),
}

/// A key, with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundKey {
    /// The key.
    pub key: Secret,
    /// The location: `OPENAI_API_KEY` or `/etc/talon/keys, line 2`.
    pub place: String,
}

/// Reads all keys of a source.
///
/// # Errors
/// [`KeyError`] if there is none, or an invalid one; never with the key in it.
pub fn find_keys(source: &KeySource, environment: &dyn Environment) -> Result<Vec<FoundKey>, KeyError> {
    match source {
        KeySource::Env(name) => {
            let text = environment.variable(name).unwrap_or_default();
            let text = text.trim();
            if text.is_empty() {
                return Err(KeyError::NotSet(name.clone()));
            }
            Ok(vec![check_key(text, name.clone())?])
        }
        KeySource::File(path) => {
            let bytes = environment.file(path)?;
            let text = std::str::from_utf8(bytes).map_err(|_| KeyError::NoText(path.clone()))?;
            let lines = text.lines().map(str::trim).enumerate();
            let found = lines
                .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
                .map(|(index, line)| check_key(line, format!("{}, line {}", path.display(), index + 1)))
                .collect::<Result<Vec<_>, _>>()?;
            if found.is_empty() { Err(KeyError::Empty(path.clone())) } else { Ok(found) }
        }
    }
}

fn check_key(text: &str, place: String) -> Result<FoundKey, KeyError> {
    if text.len() > MAX_KEY_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(KeyError::Malformed(place));
    }
    Ok(FoundKey { key: Secret::new(text), place })
}
