//! What was changed in the overlay, when and by whom.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use prost::Message as _;
use talon_proto::host::{ConfigChange, ConfigKeyChange, ConfigValue, ListConfigChangesResponse};

use super::storage::{StorageError, replace};
use crate::config::regular_file;
use crate::to_wire::unix_ms;

/// The latest changes that are kept: a year of weekly ones, twice. The oldest make room.
const MAX_CHANGES: usize = 100;
/// The longest file, in bytes: 4 MiB. While the changes take more, the oldest make room.
const MAX_BYTES: usize = 4 << 20;
/// The name of its file, beside the overlay.
const FILE_NAME: &str = "overlay.history";

/// A changed key, with its values in the overlay before and after.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyChange {
    pub(crate) key: Vec<String>,
    pub(crate) before: Option<ConfigValue>,
    pub(crate) after: Option<ConfigValue>,
}

/// The file of changes.
#[derive(Debug, Clone)]
pub(crate) struct History {
    path: PathBuf,
}

impl History {
    /// That of an overlay.
    pub(crate) fn beside(overlay: &Path) -> Self {
        Self { path: overlay.with_file_name(FILE_NAME) }
    }

    /// The changes, newest first. What cannot be read counts as none, and is said in the log: it decides nothing.
    pub(crate) fn read(&self) -> Vec<ConfigChange> {
        let bytes = match regular_file::read(&self.path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(regular_file::OpenError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Vec::new();
            }
            Err(error) => {
                tracing::warn!(
                    "{} cannot be read, so earlier changes are not shown: {error}",
                    self.path.display()
                );
                return Vec::new();
            }
        };
        match ListConfigChangesResponse::decode(bytes.as_slice()) {
            Ok(history) => history.changes,
            Err(error) => {
                tracing::warn!(
                    "{} is damaged, so earlier changes are not shown: {error}",
                    self.path.display()
                );
                Vec::new()
            }
        }
    }

    /// Adds a change, and returns its number.
    pub(crate) fn add(&self, by: String, keys: Vec<KeyChange>) -> Result<u64, StorageError> {
        let mut changes = self.read();
        let number = changes.first().map_or(0, |latest| latest.number) + 1;
        let key = |KeyChange { key, before, after }| ConfigKeyChange { key, before, after };
        let keys = keys.into_iter().map(key).collect();
        changes.insert(0, ConfigChange { number, unix_ms: unix_ms(SystemTime::now()), by, keys });
        changes.truncate(MAX_CHANGES);
        let mut history = ListConfigChangesResponse { changes };
        while history.encoded_len() > MAX_BYTES && history.changes.len() > 1 {
            history.changes.pop();
        }
        replace(&self.path, &history.encode_to_vec())?;
        Ok(number)
    }
}
