//! How often sanitizing changes ordinary files: `survey DIR… [--show]` walks the directories and prints a table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use talon_sanitize::{FamilyCounts, Sanitizer};

fn main() {
    let show = std::env::args().any(|arg| arg == "--show");
    let mut files = Vec::new();
    for dir in std::env::args().skip(1).filter(|arg| arg != "--show") {
        collect(Path::new(&dir), &mut files);
    }
    let sanitizer = Sanitizer::default();
    let (mut seen, mut changed, mut chars, mut marks) = (0u32, 0u32, 0usize, 0u32);
    let mut families: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        seen += 1;
        chars += text.len();
        let mut tally = FamilyCounts::default();
        let out = sanitizer.text(&text, &mut tally);
        if out == text {
            continue;
        }
        changed += 1;
        marks += tally.total();
        for (family, count) in tally.families() {
            let entry = families.entry(family).or_default();
            *entry = (entry.0 + 1, entry.1 + count);
        }
        if show {
            print_changes(&file, &text, &out);
        }
    }
    println!("{seen} files, {changed} changed, {:.4} %", 100.0 * f64::from(changed) / f64::from(seen.max(1)));
    println!("{marks} marks, {:.4} per 1,000 characters", 1000.0 * f64::from(marks) / chars.max(1) as f64);
    for (family, (files, count)) in families {
        println!("{family:12} {files:6} files {count:8} places");
    }
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, files),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
}

fn print_changes(file: &Path, before: &str, after: &str) {
    let lines = after.lines().filter(|line| !before.contains(line));
    for line in lines.take(3) {
        println!("{}: {}", file.display(), line.chars().take(160).collect::<String>().trim());
    }
}
