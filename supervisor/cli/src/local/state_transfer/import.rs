//! `talon import`.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;
use talon_proto::state::{
    ImportChunk, ImportFile, ImportOptions, ImportRefused, ImportReport, import_chunk, import_report,
};
use talon_sanitize::sanitized;
use talon_supervisor::state::IMPORTED_FILE;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::progress;
use super::report::ImportSummary;
use super::tree::Tree;
use super::walk::{FoundFile, MAX_FILE_BYTES, SkippedFile, WalkError, walk};
use super::{CHUNK_BYTES, MAX_STREAMED};
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::local::state::access::{Purpose, StateAccess};
use crate::local::state::operator::Operator;
use crate::local::state::part::StatePart;
use crate::output::Output;
use crate::transient_bar::TransientBar;

/// Import state that `talon export`, or an OpenTalon, wrote.
///
/// Existing records stay unchanged, so that the same directory can be imported twice. Invalid records are
/// reported with file, line and column, and the others are imported; the exit code is then 1. A file of more
/// than 256 MiB is reported and not read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon import ~/.opentalon --dry-run
  talon import ~/.opentalon --sender anna
  talon import ./state-of-today
  talon import ./state-of-today --output json | jq '.refused[]'")]
pub(crate) struct ImportArgs {
    /// The directory with sessions/, memory/, approvals/ and plugins/; anything else in it is ignored.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Report what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Import only this part.
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<StatePart>,
    /// Whose the sessions are that name no sender: a user's name. Without it they are of the sender `import`, and only
    /// operators see them.
    #[arg(long, value_name = "NAME")]
    sender: Option<String>,
}

impl ImportArgs {
    pub(crate) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let dir = self.dir.display();
        let unusable =
            |code, error: &dyn std::fmt::Display| Failure::new(code, format!("cannot import {dir}: {error}"));
        let tree = Arc::new(Tree::open(&self.dir).map_err(|error| unusable(exit::FAILED, &error))?);
        let walked = walk(&tree).map_err(|error| {
            let code = if matches!(error, WalkError::Io { .. }) { exit::FAILED } else { exit::USAGE };
            unusable(code, &error)
        })?;
        let wanted = |part: StatePart| self.only.is_none_or(|only| only == part);
        let mut report = ImportSummary::new(dir.to_string(), self.dry_run);
        for SkippedFile { path, reason, .. } in walked.skipped.into_iter().filter(|file| wanted(file.part)) {
            report.add_refused(ImportRefused { path, reason, ..ImportRefused::default() });
        }
        let found: Vec<FoundFile> = walked.files.into_iter().filter(|file| wanted(file.part)).collect();
        if found.is_empty() && report.is_empty() {
            let text = "no sessions/*.yaml, memory/memories.yaml, approvals/rules.yaml, media/*.yaml, schedule/*.yaml, notifications/notifications.yaml or plugins/*/state.yaml is in it";
            return Err(unusable(exit::USAGE, &text));
        }
        let mut reach = StateAccess::find(global).await?;
        let progress = progress::bytes("importing", found.iter().map(|file| file.bytes).sum());
        let fresh = import_all(&mut reach, &tree, &found, &self.options(), &mut report, &progress).await?;
        drop(progress);
        for part in fresh {
            out.err_line(sanitized!(
                "{}: there is nothing yet, so an empty database was compared with",
                part.label()
            ));
        }
        if !self.dry_run && report.has_records() {
            self.write_import_marker(&mut reach, &report, out).await;
        }
        Ok(report.print(out))
    }

    fn options(&self) -> ImportOptions {
        ImportOptions { dry_run: self.dry_run, sender: self.sender.clone().unwrap_or_default() }
    }

    /// Writes a marker for the latest import into the data directory, so that the supervisor stops advising
    /// one. A user who reached the state through a supervisor may lack the permission to write there; that is
    /// reported.
    async fn write_import_marker(
        &self,
        reach: &mut StateAccess<'_>,
        report: &ImportSummary,
        out: &mut Output,
    ) {
        // The import is complete, so a failure here must not fail it.
        let data_dir = match reach.data_dir().await {
            Ok(data_dir) => data_dir,
            Err(failure) => {
                out.err_line(sanitized!("nothing says that this was imported ({})", sanitized_line(failure)));
                return;
            }
        };
        let from = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
        let parts = StatePart::ALL.into_iter().filter(|part| self.only.is_none_or(|only| only == *part));
        let total = report.total();
        let text = json!({
            "at": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            "from": from.to_string_lossy(),
            "parts": parts.map(StatePart::as_str).collect::<Vec<_>>(),
            "imported": total.imported,
            "unchanged": total.unchanged,
            "refused": total.refused,
        });
        let write = || {
            let mut draft = Tree::open(&data_dir)?.begin_file(IMPORTED_FILE)?;
            draft.write(format!("{text:#}\n").as_bytes())?;
            draft.finish()
        };
        if let Err(error) = write() {
            let error: io::Error = error;
            let marker = data_dir.join(IMPORTED_FILE);
            out.err_line(sanitized!(
                "{} cannot be written ({}): `talon serve` keeps naming what could be imported",
                sanitized_line(marker.display()),
                sanitized_line(error)
            ));
        }
    }
}

/// Imports the files of all parts; returns the parts for which a dry run used an empty database.
async fn import_all(
    reach: &mut StateAccess<'_>,
    tree: &Arc<Tree>,
    found: &[FoundFile],
    options: &ImportOptions,
    report: &mut ImportSummary,
    progress: &TransientBar,
) -> Result<Vec<StatePart>, Failure> {
    let mut fresh = Vec::new();
    for part in StatePart::ALL {
        let files: Vec<FoundFile> = found.iter().filter(|file| file.part == part).cloned().collect();
        if files.is_empty() {
            continue;
        }
        let purpose = if options.dry_run { Purpose::DryRun } else { Purpose::Add };
        if let Some(mut operator) = reach.open(part, purpose).await? {
            import_part(&mut operator, tree, files, options.clone(), report, progress).await?;
            if operator.is_scratch() {
                fresh.push(part);
            }
        }
    }
    Ok(fresh)
}

/// Imports the files of one part.
async fn import_part(
    operator: &mut Operator,
    tree: &Arc<Tree>,
    files: Vec<FoundFile>,
    options: ImportOptions,
    report: &mut ImportSummary,
    progress: &TransientBar,
) -> Result<(), Failure> {
    let (to, chunks) = mpsc::channel(MAX_STREAMED);
    let (tree, count) = (Arc::clone(tree), progress.counter());
    let feeding = tokio::task::spawn_blocking(move || send_files(&tree, files, options, &to, &count));
    let reports = operator.client.import(ReceiverStream::new(chunks)).await;
    let mut reports = reports.map_err(|status| operator.failure(&status))?.into_inner();
    loop {
        let message = reports.message().await.map_err(|status| operator.failure(&status))?;
        let Some(ImportReport { kind }) = message else {
            return Err(Failure::failed(
                "the import ended before its last file: what was imported stays, and doing it again does no harm",
            ));
        };
        match kind {
            Some(import_report::Kind::File(file)) => report.add_file(file),
            Some(import_report::Kind::Refused(refused)) => report.add_refused(refused),
            Some(import_report::Kind::Done(_)) => break,
            // Ignore messages of a newer service.
            None => {}
        }
    }
    for refused in feeding.await.map_err(|error| Failure::failed(format!("reading failed: {error}")))? {
        report.add_refused(refused);
    }
    Ok(())
}

/// Sends the files; returns those that could not be read. Stops early if the service closes the stream; its
/// status says why.
fn send_files(
    tree: &Tree,
    files: Vec<FoundFile>,
    options: ImportOptions,
    to: &mpsc::Sender<ImportChunk>,
    count: &impl Fn(u64),
) -> Vec<ImportRefused> {
    let mut unread = Vec::new();
    let send = |kind| to.blocking_send(ImportChunk { kind: Some(kind) });
    if send(import_chunk::Kind::Options(options)).is_err() {
        return unread;
    }
    for FoundFile { path, .. } in files {
        let mut file = match tree.open_file(&path) {
            Ok(file) => file,
            Err(error) => {
                let reason = format!("it cannot be read: {error}");
                unread.push(ImportRefused { path, reason, ..ImportRefused::default() });
                continue;
            }
        };
        if send(import_chunk::Kind::Begin(ImportFile { path: path.clone() })).is_err() {
            return unread;
        }
        let mut sent = 0;
        loop {
            let mut chunk = Vec::with_capacity(CHUNK_BYTES);
            match file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk) {
                Ok(0) => break,
                Ok(bytes) if sent + bytes as u64 > MAX_FILE_BYTES => {
                    let reason =
                        format!("it has grown beyond {MAX_FILE_BYTES} bytes, and was not read to its end");
                    unread.push(ImportRefused { path, reason, ..ImportRefused::default() });
                    break;
                }
                Ok(bytes) => {
                    sent += bytes as u64;
                    count(bytes as u64);
                }
                Err(error) => {
                    // The part of the file that was sent may have been imported; this reports that it is
                    // incomplete.
                    let reason = format!("it cannot be read to its end: {error}");
                    unread.push(ImportRefused { path, reason, ..ImportRefused::default() });
                    break;
                }
            }
            if send(import_chunk::Kind::Data(chunk)).is_err() {
                return unread;
            }
        }
    }
    unread
}
