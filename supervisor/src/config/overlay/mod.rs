//! The overlay: values that administrators change while the supervisor runs, in a file of its own beside the data.
//!
//! ```text
//! defaults < file < overlay.yaml < environment < flags
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `keys`, `default_keys` | which keys it may hold |
//! | `document` | its text: read, changed, written |
//! | `layer` | its values among the others |
//! | `storage` | its file |
//! | `history` | what was changed, when and by whom |
//!
//! It is written by the supervisor alone. Nothing in it is substituted, and nothing in it names a program, a path or a secret.

mod default_keys;
mod document;
mod history;
mod keys;
pub(super) mod layer;
mod storage;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use self::default_keys::DEFAULT_KEYS;
pub(crate) use self::document::{Edit, OverlayDocument};
pub(crate) use self::history::{History, KeyChange};
pub(crate) use self::keys::OverlayKeys;
pub(super) use self::keys::is_ever_allowed;
pub(crate) use self::storage::{OverlayFile, StorageError};

/// The name of its file, in `state.data_dir`.
const FILE_NAME: &str = "overlay.yaml";

/// The longest overlay, in bytes: 256 KiB, far more than all keys that it may hold. A change beyond it is refused.
pub(crate) const MAX_OVERLAY_BYTES: usize = 256 << 10;

/// What is taken of the overlay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OverlayUse {
    /// What is in its file.
    #[default]
    Read,
    /// Nothing.
    Ignore,
    /// This text in place of its file: what would be if it were written.
    Candidate(Arc<str>),
}

/// Its file.
pub(crate) fn path_in(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE_NAME)
}

#[cfg(test)]
mod tests;
