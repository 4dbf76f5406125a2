//! The files with what a person typed, one for each line editor.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Entries of a history; the oldest are dropped first.
pub(crate) const MAX_ENTRIES: usize = 1000;
/// Longer entries are not stored, which bounds the file to 8 MiB.
pub(crate) const MAX_ENTRY_BYTES: usize = 8 << 10;
/// A larger history file was not written by this program and is left alone.
const MAX_FILE_BYTES: u64 = (MAX_ENTRIES * MAX_ENTRY_BYTES * 2) as u64;
/// Only the owner may read what was typed.
const PRIVATE_DIR: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// The history file of this name: `$XDG_STATE_HOME/talon/NAME`, or below `~/.local/state`. `None`: none can be used.
pub(crate) fn prepare(name: &str) -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME");
    path(name, state.as_deref().map(Path::new), std::env::home_dir().as_deref())
        .filter(|file| is_prepared(file))
}

fn path(name: &str, state: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let state = state.filter(|path| path.is_absolute()).map(Path::to_owned);
    let state = state.or_else(|| Some(home?.join(".local/state")))?;
    Some(state.join("talon").join(name))
}

/// Creates the directory and restricts the file to its owner.
fn is_prepared(file: &Path) -> bool {
    let Some(dir) = file.parent() else { return false };
    if DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir).is_err() {
        return false;
    }
    match file.symlink_metadata() {
        Ok(about) => {
            let private = std::fs::set_permissions(file, Permissions::from_mode(PRIVATE_FILE));
            about.is_file() && about.len() <= MAX_FILE_BYTES && private.is_ok()
        }
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-44
    #[test]
    fn the_history_is_where_state_belongs_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let home = Some(Path::new("/home/a"));
        let of = |state: Option<&Path>, home: Option<&Path>| path("chat-history", state, home);
        assert_eq!(of(None, home).unwrap(), Path::new("/home/a/.local/state/talon/chat-history"));
        assert_eq!(of(Some(Path::new("relative")), None), None);
        let file = of(Some(dir.path()), home).unwrap();
        assert!(is_prepared(&file));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file.parent().unwrap()), PRIVATE_DIR);
        std::fs::write(&file, "#V2\nhello\n").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(is_prepared(&file));
        assert_eq!(mode(&file), PRIVATE_FILE);
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(!is_prepared(&file), "no file");
    }
}
