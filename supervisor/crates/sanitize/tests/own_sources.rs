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

/// A sample of the sources of this project's dependencies, with a fixed seed; the whole is in
/// `docs/guard-results.md`.
// Promises: GUARD-75
#[test]
fn a_sample_of_other_sources_is_left_alone() {
    /// Of some tens of thousands: enough to notice a rule that matches ordinary code, in a few seconds.
    const SAMPLE: usize = 400;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let mut files = Vec::new();
    if let Some(home) = home {
        collect(&home.join("registry/src"), &mut files);
    }
    if files.len() < SAMPLE {
        println!("skipped: the sources of the dependencies are not unpacked below CARGO_HOME");
        return;
    }
    files.sort();
    // A linear congruential generator with the constants of Knuth's MMIX.
    let mut seed = 23_u64;
    let sample: Vec<PathBuf> = (0..SAMPLE)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            files[(seed >> 33) as usize % files.len()].clone()
        })
        .collect();
    let sanitizer = Sanitizer::default();
    let is_changed = |file: &&PathBuf| {
        std::fs::read_to_string(file).is_ok_and(|text| text.len() < 1 << 18 && !sanitizer.is_clean(&text))
    };
    let changed: Vec<_> = sample.iter().filter(is_changed).collect();
    // 0.2 % of all of them are.
    assert!(changed.len() * 100 <= SAMPLE, "{} of {SAMPLE} changed: {changed:?}", changed.len());
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
