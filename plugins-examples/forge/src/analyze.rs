//! `analyze_code`: finds what a reviewer would notice first.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use serde::Serialize;
use talon_sdk::{Context, Output, ToolError};

use crate::root::Root;

/// Files that one call examines; call it for each directory of a larger tree.
const MAX_FILES: usize = 2_000;
/// How deep directories are followed.
const MAX_DEPTH: usize = 16;
/// A larger file is taken to be generated.
const MAX_FILE_BYTES: u64 = 256 << 10;
/// Findings that are listed; more are only counted, because readers start with the first few.
const MAX_FINDINGS: usize = 50;
/// A function with more lines than this is too long to read at once.
const LONG_FUNCTION_LINES: usize = 80;
/// How much of a line is shown.
const MAX_SHOWN_CHARS: usize = 120;

#[talon_sdk::args]
pub(crate) struct Analyze {
    /// A file or directory below the root; the root itself if left out.
    #[serde(default)]
    path: String,
}

/// One finding.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    /// `todo`, `unwrap` or `long-function`.
    pub(crate) kind: &'static str,
    text: String,
}

/// The findings, and how much was examined.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    files: usize,
    lines: usize,
    pub(crate) findings: Vec<Finding>,
    /// How many findings are not listed.
    more: usize,
    /// Whether files were left out: too many, too large, or too deep.
    incomplete: bool,
}

/// Looks code over: notes to do, places that may panic, functions that are too long.
#[talon_sdk::tool(read_only)]
pub(crate) async fn analyze_code(args: Analyze, cx: Context) -> Result<Output, ToolError> {
    let root = cx.shared::<Root>()?;
    let report = cx.blocking(move || report(&root.0, &args.path)).await?;
    let mut text = format!(
        "{} findings in {} lines of {} files",
        report.findings.len() + report.more,
        report.lines,
        report.files
    );
    for Finding { path, line, kind, text: shown } in &report.findings {
        text.push_str(&format!("\n{path}:{line}: {kind}: {shown}"));
    }
    if report.more > 0 {
        text.push_str(&format!("\n({} more are not shown; give a path)", report.more));
    }
    if report.incomplete {
        text.push_str("\n(not everything was looked at; give a path)");
    }
    Output::text(text).structured(report)
}

pub(crate) fn report(root: &Dir, path: &str) -> Result<Report, ToolError> {
    let start = if path.is_empty() { Path::new(".") } else { Path::new(path) };
    let refused = |error| {
        ToolError::new(format!("`{}` cannot be looked at below the root", start.display())).because(error)
    };
    let metadata = root.symlink_metadata(start).map_err(refused)?;
    let mut report = Report::default();
    if metadata.is_file() {
        report.file(root, start);
    } else {
        let dir = root.open_dir(start).map_err(refused)?;
        report.directory(&dir, start, 0);
    }
    Ok(report)
}

impl Report {
    /// In the order of names, so that two runs on the same code give the same result.
    fn directory(&mut self, dir: &Dir, at: &Path, depth: usize) {
        let Ok(entries) = dir.entries() else { return };
        let mut names: Vec<PathBuf> =
            entries.flatten().map(|entry| PathBuf::from(entry.file_name())).collect();
        names.sort();
        for name in names {
            let hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
            let Ok(metadata) = dir.symlink_metadata(&name) else { continue };
            if hidden || name.as_os_str() == "target" || metadata.is_symlink() {
                continue;
            }
            if metadata.is_dir() {
                match dir.open_dir(&name) {
                    Ok(below) if depth < MAX_DEPTH => self.directory(&below, &at.join(&name), depth + 1),
                    _ => self.incomplete = true,
                }
            } else if metadata.is_file() && name.extension().is_some_and(|extension| extension == "rs") {
                if self.files == MAX_FILES || metadata.len() > MAX_FILE_BYTES {
                    self.incomplete = true;
                    continue;
                }
                self.read(dir, &name, &at.join(&name));
            }
        }
    }

    fn file(&mut self, root: &Dir, path: &Path) {
        self.read(root, path, path);
    }

    fn read(&mut self, dir: &Dir, name: &Path, shown: &Path) {
        let mut text = String::new();
        let Ok(file) = dir.open(name) else { return };
        if file.take(MAX_FILE_BYTES).read_to_string(&mut text).is_err() {
            return;
        }
        self.files += 1;
        let shown = shown.strip_prefix(".").unwrap_or(shown).display().to_string();
        let mut function = None;
        for (index, line) in text.lines().enumerate() {
            self.lines += 1;
            let code = line.split("//").next().unwrap_or_default();
            if ["TODO", "FIXME"].iter().any(|mark| line.contains(mark)) {
                self.add_finding(&shown, index, "todo", line);
            }
            if code.contains(".unwrap()") {
                self.add_finding(&shown, index, "unwrap", line);
            }
            let indent = line.len() - line.trim_start().len();
            match function {
                None if code.contains("fn ") && code.trim_end().ends_with('{') => {
                    function = Some((index, indent, line))
                }
                // A function ends at a brace with the indentation of its first line.
                Some((begin, at, head)) if indent == at && line.trim() == "}" => {
                    if index - begin > LONG_FUNCTION_LINES {
                        self.add_finding(&shown, begin, "long-function", head);
                    }
                    function = None;
                }
                _ => {}
            }
        }
    }

    fn add_finding(&mut self, path: &str, index: usize, kind: &'static str, line: &str) {
        if self.findings.len() == MAX_FINDINGS {
            self.more += 1;
            return;
        }
        let text = line.trim().chars().take(MAX_SHOWN_CHARS).collect();
        self.findings.push(Finding { path: path.to_owned(), line: index + 1, kind, text });
    }
}
