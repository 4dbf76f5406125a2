//! How often sanitizing changes ordinary files, rule by rule: `survey [--show] DIR…` walks the directories
//! and prints rows of a table in Markdown. With `--show` it prints the first changed lines of each file too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use talon_sanitize::{FamilyCounts, Sanitizer};

fn main() {
    let show = std::env::args().any(|arg| arg == "--show");
    println!("| files | rule | files changed | share | places |\n|---|---|---:|---:|---:|");
    for dir in std::env::args().skip(1).filter(|arg| arg != "--show") {
        survey(Path::new(&dir), show);
    }
}

fn survey(dir: &Path, show: bool) {
    let mut files = Vec::new();
    collect(dir, &mut files);
    let sanitizer = Sanitizer::default();
    let (mut seen, mut changed, mut places) = (0u32, 0u32, 0u32);
    let mut rules: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for file in files {
        // Binary files are not counted: what is not UTF-8, or holds a NUL, as git judges.
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        if text.contains('\0') {
            continue;
        }
        seen += 1;
        let mut tally = FamilyCounts::default();
        let out = sanitizer.text(&text, &mut tally);
        if tally.total() == 0 {
            continue;
        }
        changed += 1;
        places += tally.total();
        for (family, kind, count) in tally.kinds() {
            let entry = rules.entry(format!("{family}, {kind}")).or_default();
            *entry = (entry.0 + 1, entry.1 + count);
        }
        if show {
            print_changes(&file, &text, &out);
        }
    }
    let share = |files: u32| 100.0 * f64::from(files) / f64::from(seen.max(1));
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    println!("| {seen}, {name} | any | {changed} | {:.3} % | {places} |", share(changed));
    for (rule, (files, count)) in rules {
        println!("| | {rule} | {files} | {:.3} % | {count} |", share(files));
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

/// No edit adds or removes a line, so lines are compared in pairs.
fn print_changes(file: &Path, before: &str, after: &str) {
    let lines = before.lines().zip(after.lines()).filter(|(before, after)| before != after);
    for (_, line) in lines.take(3) {
        println!("{}: {}", file.display(), line.chars().take(160).collect::<String>().trim());
    }
}
