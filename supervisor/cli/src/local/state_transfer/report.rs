//! The report of an import.

use serde_json::{Value, json};
use talon_proto::state::{ImportCounts, ImportRefused, ImportedFile};
use talon_sanitize::{Raw, Sanitized, sanitized};

use super::layout::{PLUGINS, SESSIONS};
use crate::exit;
use crate::line::sanitized_line;
use crate::output::Output;
use crate::show::counted;
use crate::table::Table;

/// Refused records that the JSON output lists; beyond this they are only counted. A directory with more of
/// them was written by another program.
const MAX_REFUSED: usize = 100_000;
/// Refused records listed on a terminal, and files with separate rows.
const MAX_SHOWN: usize = 100;
/// Bytes of a record's name, and of a reason, in a line.
const MAX_RECORD_BYTES: usize = 100;
const MAX_REASON_BYTES: usize = 400;

/// The results of an import.
#[derive(Debug)]
pub(super) struct ImportSummary {
    dir: String,
    dry_run: bool,
    files: Vec<ImportedFile>,
    refused: Vec<ImportRefused>,
    refused_count: u64,
}

impl ImportSummary {
    pub(super) fn new(dir: String, dry_run: bool) -> Self {
        Self { dir, dry_run, files: Vec::new(), refused: Vec::new(), refused_count: 0 }
    }

    pub(super) fn add_file(&mut self, file: ImportedFile) {
        self.files.push(file);
    }

    pub(super) fn add_refused(&mut self, refused: ImportRefused) {
        self.refused_count += 1;
        if self.refused.len() < MAX_REFUSED {
            self.refused.push(refused);
        }
    }

    /// Whether there are no results.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.refused_count == 0
    }

    /// Whether the files contained records: imported ones, or ones that existed already.
    pub(super) fn has_records(&self) -> bool {
        let total = self.total();
        total.imported > 0 || total.unchanged > 0
    }

    fn is_truncated(&self) -> bool {
        self.refused_count > self.refused.len() as u64
    }

    pub(super) fn total(&self) -> ImportCounts {
        let mut total = sum(self.files.iter());
        total.refused = self.refused_count;
        total
    }

    /// Prints the report and returns the exit code.
    pub(super) fn print(&self, out: &mut Output) -> u8 {
        if out.is_json() {
            out.json(&self.json());
        } else {
            self.show(out);
        }
        if self.refused_count == 0 { exit::OK } else { exit::TOOL_ERROR }
    }

    fn json(&self) -> Value {
        let counts = |counts: &ImportCounts| json!({ "imported": counts.imported, "unchanged": counts.unchanged, "refused": counts.refused });
        let file = |file: &ImportedFile| {
            let plugin = Some(&file.plugin).filter(|plugin| !plugin.is_empty());
            json!({ "path": file.path, "plugin": plugin, "counts": counts(&file.counts.unwrap_or_default()) })
        };
        let refused = |refused: &ImportRefused| {
            // Line 0 stands for the whole file.
            let place = |number: u64| (number > 0).then_some(number);
            json!({
                "path": refused.path,
                "line": place(refused.line),
                "column": place(refused.column),
                "record": refused.record,
                "reason": refused.reason,
            })
        };
        json!({
            "dir": self.dir,
            "dry_run": self.dry_run,
            "counts": counts(&self.total()),
            "files": self.files.iter().map(file).collect::<Value>(),
            "refused": self.refused.iter().map(refused).collect::<Value>(),
            // Whether more records were refused than are listed.
            "truncated": self.is_truncated(),
        })
    }

    fn show(&self, out: &mut Output) {
        let imported = if self.dry_run { "WOULD IMPORT" } else { "IMPORTED" };
        let mut table = Table::new(&["FILE", imported, "UNCHANGED", "REFUSED"]);
        for (path, counts) in self.rows() {
            table.row(vec![
                path.into(),
                counts.imported.into(),
                counts.unchanged.into(),
                counts.refused.into(),
            ]);
        }
        if !table.is_empty() {
            out.table(&table);
            out.line("");
        }
        for file in self.files.iter().filter(|file| !file.plugin.is_empty()).take(MAX_SHOWN) {
            out.line(sanitized!(
                "{}: its plugin is {} here: configure it by that name",
                sanitized_line(&file.path),
                sanitized_line(&file.plugin)
            ));
        }
        for refused in self.refused.iter().take(MAX_SHOWN) {
            out.line(line(refused));
        }
        let shown_count = self.refused.len().min(MAX_SHOWN) as u64;
        if self.refused_count > shown_count {
            let more = self.refused_count - shown_count;
            if self.is_truncated() {
                out.line(sanitized!("and {} more: --output json tells the first {}", more, MAX_REFUSED));
            } else {
                out.line(sanitized!("and {} more: --output json tells all", more));
            }
        }
        let total = self.total();
        let (before, would) = if self.dry_run { ("dry run: ", "would be ") } else { ("", "") };
        out.line(sanitized!(
            "{}{} {}imported, {} there already, {} {}refused",
            before,
            sanitized_line(counted(total.imported, "record")),
            would,
            total.unchanged,
            total.refused,
            would
        ));
        if self.dry_run {
            out.line("dry run: nothing was changed");
        }
    }

    /// One row per file, or per directory of the layout if there are many files.
    fn rows(&self) -> Vec<(String, ImportCounts)> {
        if self.files.len() <= MAX_SHOWN {
            return self
                .files
                .iter()
                .map(|file| (file.path.clone(), file.counts.unwrap_or_default()))
                .collect();
        }
        let is_in = |file: &&ImportedFile, dir: &str| file.path.split('/').next() == Some(dir);
        let mut rows = Vec::new();
        for dir in [SESSIONS, PLUGINS] {
            let count = self.files.iter().filter(|file| is_in(file, dir)).count();
            if count > 0 {
                let counts = sum(self.files.iter().filter(|file| is_in(file, dir)));
                rows.push((format!("{dir}/ ({})", counted(count as u64, "file")), counts));
            }
        }
        let others = self.files.iter().filter(|file| !is_in(file, SESSIONS) && !is_in(file, PLUGINS));
        rows.extend(others.take(MAX_SHOWN).map(|file| (file.path.clone(), file.counts.unwrap_or_default())));
        rows
    }
}

fn sum<'f>(files: impl Iterator<Item = &'f ImportedFile>) -> ImportCounts {
    files.filter_map(|file| file.counts).fold(ImportCounts::default(), |sum, one| ImportCounts {
        imported: sum.imported.saturating_add(one.imported),
        unchanged: sum.unchanged.saturating_add(one.unchanged),
        refused: sum.refused.saturating_add(one.refused),
    })
}

/// `file:line:column: record: reason`, the format of compilers.
fn line(refused: &ImportRefused) -> Sanitized {
    let path = sanitized_line(&refused.path);
    let place = match (refused.line, refused.column) {
        (0, _) => String::new(),
        (line, 0) => format!(":{line}"),
        (line, column) => format!(":{line}:{column}"),
    };
    let record = match refused.record.as_str() {
        "" => Sanitized::default(),
        record => sanitized!("{}: ", Raw::from(record).line_within(MAX_RECORD_BYTES)),
    };
    let reason = Raw::from(&refused.reason).line_within(MAX_REASON_BYTES);
    sanitized!("{}{}: {}{}", path, sanitized_line(place), record, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: u64, column: u64, record: &str) -> ImportRefused {
        ImportRefused {
            path: "plugins/n/state.yaml".into(),
            line,
            column,
            record: record.into(),
            reason: "why".into(),
        }
    }

    #[test]
    fn what_was_refused_is_said_with_its_place_and_is_inert() {
        assert_eq!(line(&refused(3, 7, "key")).as_str(), "plugins/n/state.yaml:3:7: key: why");
        assert_eq!(line(&refused(0, 0, "")).as_str(), "plugins/n/state.yaml: why");
        let long = line(&refused(1, 1, &"\u{1b}".repeat(10_000)));
        assert!(long.len() < 1000 && !long.contains('\u{1b}'), "{long}");
    }

    #[test]
    fn many_files_are_told_by_directory_and_counts_add_up() {
        let mut report = ImportSummary::new("d".into(), true);
        let counts = Some(ImportCounts { imported: 1, unchanged: 2, refused: 0 });
        for number in 0..150 {
            report.add_file(ImportedFile {
                path: format!("sessions/{number}.yaml"),
                counts,
                ..Default::default()
            });
        }
        report.add_file(ImportedFile { path: "memory/memories.yaml".into(), counts, ..Default::default() });
        for _ in 0..3 {
            report.add_refused(refused(0, 0, ""));
        }
        let rows: Vec<String> = report.rows().into_iter().map(|(path, _)| path).collect();
        assert_eq!(rows, ["sessions/ (150 files)", "memory/memories.yaml"]);
        assert_eq!(report.total(), ImportCounts { imported: 151, unchanged: 302, refused: 3 });
        let value = report.json();
        assert_eq!(value["refused"].as_array().unwrap().len(), 3);
        assert_eq!(value["refused"][0]["line"], Value::Null);
        assert_eq!(value["truncated"], false);
    }

    #[test]
    fn what_is_refused_beyond_the_limit_is_counted_and_said_to_be_missing() {
        let mut report = ImportSummary::new("d".into(), false);
        for _ in 0..=MAX_REFUSED {
            report.add_refused(refused(0, 0, ""));
        }
        let value = report.json();
        assert_eq!(value["refused"].as_array().unwrap().len(), MAX_REFUSED);
        assert_eq!(value["counts"]["refused"], MAX_REFUSED + 1);
        assert_eq!(value["truncated"], true);
    }
}
