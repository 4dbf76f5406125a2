//! Ordinary source code comes out unchanged: this repository's own is at hand.

use std::path::{Path, PathBuf};

use talon_sanitize::Sanitizer;

// Promises: GUARD-18
#[test]
fn source_code_is_left_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut files = Vec::new();
    // Not this crate nor the guard, which have to write the delimiters down.
    for dir in [
        "proto",
        "sdk",
        "supervisor/src",
        "supervisor/crates/jail",
        "supervisor/crates/plugin",
        "supervisor/crates/plugin-client",
        "supervisor/crates/plugin-config",
        "supervisor/crates/egress",
    ] {
        collect(&root.join(dir), &mut files);
    }
    assert!(files.len() > 10, "the sources are where they were");
    let sanitizer = Sanitizer::default();
    let changed: Vec<_> = files
        .iter()
        .filter(|file| std::fs::read_to_string(file).is_ok_and(|text| !sanitizer.is_clean(&text)))
        .collect();
    assert!(changed.len() * 20 <= files.len(), "{} of {} changed: {changed:?}", changed.len(), files.len());
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "proto") {
            files.push(path);
        }
    }
}
