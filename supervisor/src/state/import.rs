//! Finds state in the layout of the founding documents (an earlier program), which can be imported.

use std::path::{Path, PathBuf};

/// The default state directory of such a program, below the home directory.
const DEFAULT_DIR: &str = ".opentalon";
/// Marker file that an import leaves in the data directory, with what was imported and when. It suppresses
/// the advice to import.
pub const IMPORTED_FILE: &str = "imported";
/// Files and directories in that layout.
const PARTS: [&str; 3] = ["sessions", "memory/memories.yaml", "plugins"];

/// The directories that hold state in that layout: the default one, and the data directory itself, which such
/// a program may have used. Empty once something was imported ([`IMPORTED_FILE`]). The database cannot show
/// that, since the first start creates it.
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
