//! The files that commands are given.

use std::fs;
use std::path::{Path, PathBuf};

use talon_lua_engine::MAX_SOURCE_BYTES;

/// What a script's file ends with, and a file with its tests.
pub(super) const ENDING: &str = ".lua";
pub(super) const TESTS_ENDING: &str = "_test.lua";

/// The scripts of these paths, in order: files, and those in directories.
pub(super) fn scripts(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let listed = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let scripts = listed.flatten().map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.ends_with(ENDING) && !name.ends_with(TESTS_ENDING)
        });
        found.extend(scripts);
    }
    found.sort();
    if found.is_empty() {
        return Err("there is no script: name a file, or a directory with files NAME.lua".to_owned());
    }
    Ok(found)
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let size = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len();
    if size > MAX_SOURCE_BYTES as u64 {
        return Err(format!("{} has more than {MAX_SOURCE_BYTES} bytes", path.display()));
    }
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
