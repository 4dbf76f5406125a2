//! `talon export`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use talon_proto::state::{ExportRequest, export_chunk};
use talon_sanitize::{Raw, sanitized};

use super::layout;
use super::progress;
use super::tree::{Draft, Tree};
use super::walk::{MAX_FILES, walk};
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::local::state::access::{Purpose, StateAccess};
use crate::local::state::operator::Operator;
use crate::local::state::part::StatePart;
use crate::output::Output;
use crate::show::counted;
use crate::transient_bar::TransientBar;

/// Write all state as YAML: sessions/<id>.yaml, memory/memories.yaml, approvals/rules.yaml,
/// media/<session>.yaml, schedule/occurrences.yaml, schedule/proposals.yaml, notifications/notifications.yaml,
/// plugins/<id>/state.yaml.
///
/// The state stays in use meanwhile; each file is a consistent snapshot. `talon import` reads the files back.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon export ./state-of-today
  talon export ./state-of-today --overwrite --only plugins")]
pub(crate) struct ExportArgs {
    /// The target directory; created if it does not exist.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Write into the directory of an earlier export. Old files that are not overwritten stay.
    #[arg(long)]
    overwrite: bool,
    /// Export only this part.
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<StatePart>,
}

/// The files that were written.
#[derive(Debug, Default)]
struct ExportedFiles {
    files: BTreeSet<String>,
    records: u64,
}

impl ExportArgs {
    pub(crate) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let dir = self.dir.display().to_string();
        let failed =
            |error: &dyn std::fmt::Display| Failure::failed(format!("cannot write to {dir}: {error}"));
        let mut reach = StateAccess::find(global).await?;
        let mut operators = Vec::new();
        for part in StatePart::ALL.into_iter().filter(|part| self.only.is_none_or(|only| only == *part)) {
            if let Some(operator) = reach.open(part, Purpose::Use).await? {
                operators.push((part, operator));
            }
        }
        if operators.is_empty() {
            return Err(reach.no_state_failure());
        }
        let tree = Tree::create(&self.dir).map_err(|error| failed(&error))?;
        let before = walk(&tree).map_err(|error| failed(&error))?;
        if let (Some(first), false) = (before.files.first(), self.overwrite) {
            let text = format!(
                "{dir} holds an export already ({}): choose another place, or say --overwrite",
                first.path
            );
            return Err(Failure::usage(text));
        }
        let mut written = ExportedFiles::default();
        let progress = progress::files("exporting");
        for (part, operator) in &mut operators {
            export(operator, *part, &tree, &mut written, &progress).await?;
        }
        drop(operators);
        tree.sync().map_err(|error| failed(&error))?;
        drop(progress);
        let stayed: Vec<&str> = before
            .files
            .iter()
            .filter(|file| self.only.is_none_or(|only| only == file.part))
            .map(|file| file.path.as_str())
            .filter(|path| !written.files.contains(*path))
            .collect();
        print_summary(&dir, &written, &stayed, out);
        Ok(exit::OK)
    }
}

fn print_summary(dir: &str, written: &ExportedFiles, stayed: &[&str], out: &mut Output) {
    let files = written.files.len();
    if out.is_json() {
        out.json(&json!({ "dir": dir, "files": files, "records": written.records, "stayed": stayed }));
        return;
    }
    let (records, in_files) = (counted(written.records, "record"), counted(files as u64, "file"));
    out.line(sanitized!(
        "{}: {} in {}",
        sanitized_line(dir),
        sanitized_line(records),
        sanitized_line(in_files)
    ));
    if let Some(first) = stayed.first() {
        out.line(sanitized!(
            "left of an earlier export, of what is not kept any more: {}: {}{}",
            sanitized_line(counted(stayed.len() as u64, "file")),
            sanitized_line(first),
            if stayed.len() > 1 { " and others" } else { "" }
        ));
    }
}

/// Writes the files of one part.
async fn export(
    operator: &mut Operator,
    part: StatePart,
    tree: &Tree,
    written: &mut ExportedFiles,
    progress: &TransientBar,
) -> Result<(), Failure> {
    let stream = operator.client.export(ExportRequest {}).await;
    let mut stream = stream.map_err(|status| operator.failure(&status))?.into_inner();
    let mut open: Option<(String, Draft)> = None;
    let failed =
        |path: &str, error: &dyn std::fmt::Display| Failure::failed(format!("cannot write {path}: {error}"));
    loop {
        let chunk = stream.message().await.map_err(|status| operator.failure(&status))?;
        let Some(kind) = chunk.map(|chunk| chunk.kind) else {
            return Err(Failure::failed("the export ended before its last file: try again"));
        };
        match (kind, &mut open) {
            (Some(export_chunk::Kind::Planned(planned)), None) => progress.inc_length(planned.files),
            (Some(export_chunk::Kind::Begin(file)), None) => {
                let known = written.files.contains(&file.path);
                if layout::part(&file.path) != Some(part) || known || written.files.len() >= MAX_FILES {
                    return Err(unexpected_path(&file.path));
                }
                let draft = tree.begin_file(&file.path).map_err(|error| failed(&file.path, &error))?;
                open = Some((file.path, draft));
            }
            (Some(export_chunk::Kind::Data(bytes)), Some((path, draft))) => {
                draft.write(&bytes).map_err(|error| failed(path, &error))?;
            }
            (Some(export_chunk::Kind::End(end)), open @ Some(_)) => {
                if let Some((path, draft)) = open.take() {
                    draft.finish().map_err(|error| failed(&path, &error))?;
                    written.files.insert(path);
                }
                written.records = written.records.saturating_add(end.records);
                progress.inc(1);
            }
            (Some(export_chunk::Kind::Done(_)), None) => return Ok(()),
            // Ignore messages of a newer service.
            (None, _) => {}
            (Some(_), _) => return Err(unexpected_path("")),
        }
    }
}

/// The error for a path that no version of the service sends. Nothing is written for it.
fn unexpected_path(path: &str) -> Failure {
    let path = Raw::from(path).line_within(200);
    Failure::failed(format!("the service sent what is no export ({path}): is it of another version?"))
}
