//! What a program with the founding documents' layout has left, which can be imported.

use std::path::{Path, PathBuf};

/// Where such a program keeps its state, below the home directory, unless it was told otherwise.
const DEFAULT_DIR: &str = ".opentalon";
/// What an import leaves in the data directory, with what was imported and when. While it is there nothing is advised.
pub const IMPORTED_FILE: &str = "imported";
/// What it has in there.
const PARTS: [&str; 3] = ["sessions", "memory/memories.yaml", "plugins"];

/// The directories that hold state in that layout: the default one, and the data directory itself, which may have been
/// such a program's. None once something was imported ([`IMPORTED_FILE`]): a database says nothing of that, since the first
/// start makes it.
#[must_use]
pub fn to_import(data_dir: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    if data_dir.join(IMPORTED_FILE).exists() {
        return Vec::new();
    }
    let candidates = home.map(|home| home.join(DEFAULT_DIR)).into_iter().chain([data_dir.to_owned()]);
    let mut found: Vec<PathBuf> =
        candidates.filter(|dir| PARTS.iter().any(|part| dir.join(part).exists())).collect();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_can_be_imported_is_named_until_something_was() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join(".talon");
        assert!(to_import(&data, Some(home.path())).is_empty());
        fs::create_dir_all(home.path().join(".opentalon/sessions")).unwrap();
        assert_eq!(to_import(&data, Some(home.path())), [home.path().join(".opentalon")]);
        fs::create_dir_all(data.join("plugins")).unwrap();
        assert_eq!(to_import(&data, Some(home.path())).len(), 2);
        assert_eq!(to_import(&data, None), std::slice::from_ref(&data));
        fs::create_dir_all(data.join("state")).unwrap();
        fs::write(data.join("state/state.db"), "").unwrap();
        assert_eq!(to_import(&data, Some(home.path())).len(), 2, "a supervisor has made that");
        fs::write(data.join(IMPORTED_FILE), "{}").unwrap();
        assert!(to_import(&data, Some(home.path())).is_empty());
    }
}
