//! The files that commands are given.

use std::path::{Path, PathBuf};
use std::{fs, io};

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
        let listed = fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
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
    let size = fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
    if size > MAX_SOURCE_BYTES as u64 {
        return Err(format!("{} has more than {MAX_SOURCE_BYTES} bytes", path.display()));
    }
    fs::read(path).map_err(|error| unreadable(path, &error))
}

/// In a jail this process has a uid of its own, which is the usual reason.
fn unreadable(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let uid = rustix::process::getuid().as_raw();
            format!("{shown}: uid {uid}, which runs scripts, may not read it: chmod -R o+rX {shown}")
        }
        _ => format!("{shown}: {error}"),
    }
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
