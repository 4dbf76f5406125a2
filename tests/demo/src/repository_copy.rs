//! The repository, where a plugin may read it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use talon_harness::repository;

/// The plugin runs under its own uid, which may not be able to read this repository: it searches a copy of
/// the tracked files.
pub(crate) fn copy_repository(to: &Path) -> Result<()> {
    let listed = Command::new("git").arg("-C").arg(repository()).args(["ls-files", "-z"]).output();
    let files: Vec<String> = match listed {
        Ok(output) if output.status.success() => {
            output.stdout.split(|b| *b == 0).filter_map(|p| String::from_utf8(p.to_vec()).ok()).collect()
        }
        // An unpacked archive has no git index: all its files are used.
        _ => walk(repository())?,
    };
    for file in files.iter().filter(|file| !file.is_empty()) {
        let (from, to) = (repository().join(file), to.join(file));
        if from.is_file() {
            std::fs::create_dir_all(to.parent().context("a file has a parent")?)?;
            std::fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        }
    }
    Ok(())
}

fn walk(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() && name != "target" && !name.as_encoded_bytes().starts_with(b".") {
                open.push(path);
            } else if path.is_file() {
                files.push(path.strip_prefix(root)?.display().to_string());
            }
        }
    }
    Ok(files)
}
