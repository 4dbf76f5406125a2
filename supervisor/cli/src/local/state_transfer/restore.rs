//! `talon restore`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::HumanBytes;
use serde_json::{Value, json};
use talon_proto::state::{RestoreBegin, RestoreChunk, RestoreEnd, RestoreResponse, restore_chunk};
use talon_sanitize::sanitized;
use talon_supervisor::config::{OpenError, open_regular_file};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use super::archive::{self, DatabaseEntry, VerifiedBackup};
use super::backup::refuse_servers;
use super::progress;
use super::storage::BackupStorage;
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

/// The agent reads what it keeps in memory when it starts.
const RESTART: &str = "rules of approvals, calls that wait, and what was spent are read when the agent starts: restart the supervisor if it runs";

/// Replace all state by a backup of `talon backup`.
///
/// The file is checked before anything is changed, and the replaced data is kept next to the database. Works
/// while a supervisor runs, and also for a damaged database, which is moved aside.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon restore today.tar --check
  talon restore today.tar
  talon restore today.tar --only plugins
  talon restore --from valkey.store monday")]
pub(crate) struct RestoreArgs {
    /// A file written by `talon backup`. With --from, the name of a backup.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Fetch it by this action, as plugin.action, which `talon backup --to` has stored it with.
    #[arg(long, value_name = "ACTION")]
    from: Option<String>,
    /// Report whether the file could be restored, and change nothing.
    #[arg(long)]
    check: bool,
    /// Restore only this part.
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<StatePart>,
}

impl RestoreArgs {
    pub(crate) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let name = self.file.display().to_string();
        let fetched = self.fetch(global).await?;
        let path = fetched.as_ref().map_or(self.file.as_path(), NamedTempFile::path);
        let (file, checked) = self.read(path).await?;
        let places: Vec<&DatabaseEntry> =
            checked.entries.iter().filter(|place| self.only.is_none_or(|only| only == place.part)).collect();
        if places.is_empty() {
            return Err(Failure::usage(format!(
                "{name} does not hold that part: leave --only out to restore what it holds"
            )));
        }
        let mut reach = StateAccess::find(global).await?;
        let mut operators = Vec::new();
        for place in &places {
            let operator = reach.open(place.part, Purpose::Restore).await?;
            let mut operator = operator.ok_or_else(|| reach.no_state_failure())?;
            if operator.problem().is_empty() {
                refuse_servers(&mut operator).await?;
            } else {
                out.err_line(sanitized!("{}: {}", place.part.label(), sanitized_line(operator.problem())));
            }
            operators.push(operator);
        }
        let total: u64 = places.iter().map(|place| place.copy.bytes).sum();
        let mut done = Vec::new();
        // Validate all databases before replacing the first one.
        let rounds: &[bool] = if self.check { &[true] } else { &[true, false] };
        for &check_only in rounds.iter().filter(|check_only| self.check || places.len() > 1 || !**check_only)
        {
            let progress = progress::bytes(if check_only { "checking" } else { "restoring" }, total);
            done.clear();
            for (operator, place) in operators.iter_mut().zip(&places) {
                let sent = send(operator, &file, place, check_only, &progress).await;
                let replaced: &[RestoreResponse] = if check_only { &[] } else { &done };
                done.push(sent.map_err(|failure| partial_failure(&name, &places, replaced, failure))?);
            }
        }
        drop(operators);
        self.print_summary(&checked, &places, &done, out);
        Ok(exit::OK)
    }

    /// The backup of a storage backend, in a file of mode 0600 that goes with this process.
    async fn fetch(&self, global: &Global) -> Result<Option<NamedTempFile>, Failure> {
        let Some(action) = &self.from else { return Ok(None) };
        let storage = BackupStorage::find(global, action).await?;
        let file = NamedTempFile::with_prefix(".talon-restore-");
        let mut file =
            file.map_err(|error| Failure::failed(format!("cannot write a temporary file: {error}")))?;
        storage.read(&self.file.display().to_string(), file.as_file_mut()).await?;
        Ok(Some(file))
    }

    /// Opens the file and verifies it against its manifest.
    async fn read(&self, path: &Path) -> Result<(File, VerifiedBackup), Failure> {
        let name = self.file.display().to_string();
        let mut file = open_regular_file(path).map_err(|error| match error {
            OpenError::NotRegular(_) => {
                Failure::usage(format!("{name}: {error}; name one that `talon backup` wrote"))
            }
            error => Failure::failed(format!("cannot open {name}: {error}")),
        })?;
        let about =
            file.metadata().map_err(|error| Failure::failed(format!("cannot look at {name}: {error}")))?;
        let progress = progress::bytes("reading", about.len());
        let count = progress.counter();
        let checking = tokio::task::spawn_blocking(move || {
            let checked = archive::check(&mut file, &count);
            (file, checked)
        });
        let (file, checked) =
            checking.await.map_err(|error| Failure::failed(format!("reading failed: {error}")))?;
        let checked = checked
            .map_err(|error| Failure::new(exit::REFUSED, format!("{name} cannot be restored: {error}")))?;
        Ok((file, checked))
    }

    fn print_summary(
        &self,
        checked: &VerifiedBackup,
        places: &[&DatabaseEntry],
        done: &[RestoreResponse],
        out: &mut Output,
    ) {
        let name = self.file.display();
        if out.is_json() {
            let part = |(place, response): (&&DatabaseEntry, &RestoreResponse)| {
                json!({
                    "name": archive::file_name(place.part),
                    "bytes": place.copy.bytes,
                    "schema_version": response.schema_version,
                    "kept": response.kept,
                })
            };
            out.json(&json!({
                "file": name.to_string(),
                "created_at": checked.manifest.created_at,
                "talon": checked.manifest.talon,
                "restored": !self.check,
                "parts": places.iter().zip(done).map(part).collect::<Value>(),
            }));
            return;
        }
        for (place, response) in places.iter().zip(done) {
            let size = sanitized_line(HumanBytes(place.copy.bytes));
            let did = if self.check { "can be restored" } else { "restored" };
            out.line(sanitized!(
                "{}: {}, {}, schema {}",
                place.part.label(),
                size,
                did,
                response.schema_version
            ));
            if !response.kept.is_empty() {
                out.line(sanitized!("what there was is kept in {}", sanitized_line(&response.kept)));
            }
        }
        if !self.check && places.iter().any(|place| place.part == StatePart::Agent) {
            out.line(RESTART);
        }
        let from = sanitized_line(&checked.manifest.created_at);
        let nothing = if self.check { "; nothing was changed" } else { "" };
        out.line(sanitized!("{}, of {}{}", sanitized_line(name), from, nothing));
    }
}

/// A failure after some databases were restored: lists what was done and what to do now, because the
/// databases are then of different ages.
fn partial_failure(
    name: &str,
    places: &[&DatabaseEntry],
    done: &[RestoreResponse],
    failure: Failure,
) -> Failure {
    let Some(left) = places.get(done.len()).filter(|_| !done.is_empty()) else { return failure };
    let mut text = failure.to_string();
    for (place, response) in places.iter().zip(done) {
        text.push_str(&format!("\n{} was restored before that", place.part.label()));
        match response.kept.as_str() {
            "" => text.push_str("; there was nothing in its place"),
            kept => text.push_str(&format!("; what there was is kept in {kept}")),
        }
    }
    text.push_str(&format!(
        "\n{} is not restored: mend what is said above, then `talon restore {name} --only {}` does the rest",
        left.part.label(),
        left.part.as_str()
    ));
    Failure::new(failure.code(), text)
}

/// Sends one database; returns the outcome.
async fn send(
    operator: &mut Operator,
    file: &File,
    place: &DatabaseEntry,
    check_only: bool,
    progress: &TransientBar,
) -> Result<RestoreResponse, Failure> {
    let file = file.try_clone().map_err(|error| Failure::failed(format!("cannot read the file: {error}")))?;
    let (to, chunks) = mpsc::channel(MAX_STREAMED);
    let (place, count) = (place.clone(), progress.counter());
    let feeding = tokio::task::spawn_blocking(move || send_chunks(file, &place, check_only, &to, &count));
    let response = operator.client.restore(ReceiverStream::new(chunks)).await;
    // The task stops when the service closes the stream.
    let fed = feeding.await.map_err(|error| Failure::failed(format!("reading failed: {error}")))?;
    // An incomplete stream restores nothing: report the read error.
    fed.map_err(|error| Failure::failed(format!("cannot read the file: {error}")))?;
    let response = response.map_err(|status| match status.code() {
        // Here the code means that the backup is invalid, not the command line.
        Code::InvalidArgument => Failure::new(exit::REFUSED, status.message()),
        _ => operator.failure(&status),
    })?;
    Ok(response.into_inner())
}

fn send_chunks(
    mut file: File,
    place: &DatabaseEntry,
    check_only: bool,
    to: &mpsc::Sender<RestoreChunk>,
    count: &impl Fn(u64),
) -> std::io::Result<()> {
    let send = |kind| to.blocking_send(RestoreChunk { kind: Some(kind) }).is_ok();
    let bytes = place.copy.bytes;
    let begin = RestoreBegin { layers: place.part.layers().into(), bytes, check_only };
    if !send(restore_chunk::Kind::Begin(begin)) {
        return Ok(());
    }
    file.seek(SeekFrom::Start(place.offset))?;
    let mut file = file.take(bytes);
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        if read == 0 {
            break;
        }
        count(read as u64);
        if !send(restore_chunk::Kind::Data(chunk)) {
            return Ok(());
        }
    }
    let end = RestoreEnd { sha256: place.copy.sha256.clone() };
    let _all = send(restore_chunk::Kind::End(end));
    Ok(())
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
