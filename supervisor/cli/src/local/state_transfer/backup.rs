//! `talon backup`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use indicatif::HumanBytes;
use serde_json::{Value, json};
use talon_proto::state::{BackupChunk, BackupRequest, DescribeRequest, backup_chunk};
use talon_sanitize::sanitized;
use tonic::Streaming;

use super::archive::{BackupWriter, DatabaseCopy, Manifest};
use super::progress;
use super::tree::sync_dir;
use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::line::sanitized_line;
use crate::local::state::access::{Purpose, StateAccess};
use crate::local::state::operator::Operator;
use crate::local::state::part::StatePart;
use crate::output::Output;
use crate::transient_bar::TransientBar;

/// The keys of receipts, and which plugin has which uid.
const LEFT_OUT: [&str; 2] = ["receipts", "identities.json"];

/// Write all state into one file, with a consistent snapshot of each database.
///
/// The databases stay in use meanwhile. `talon restore` restores the file. For a PostgreSQL server use
/// pg_dump. The keys of receipts and the plugins' identities are not in it: the output names them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon backup /var/backups/talon-$(date +%F).tar
  talon backup today.tar --overwrite
  talon restore today.tar --check")]
pub(crate) struct BackupArgs {
    /// The file to write, a tar. It appears only when it is complete.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace an existing file.
    #[arg(long)]
    overwrite: bool,
    /// Back up only this part.
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<StatePart>,
}

impl BackupArgs {
    pub(crate) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let name = self.file.display().to_string();
        if self.file.as_os_str() == OsStr::new("-") {
            return Err(Failure::usage(
                "a backup is written to a file, which appears when it is whole: name one",
            ));
        }
        let exists =
            || Failure::usage(format!("{name} is there already: choose another name, or say --overwrite"));
        if !self.overwrite && self.file.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let mut reach = StateAccess::find(global).await?;
        let mut operators = Vec::new();
        for part in StatePart::ALL.into_iter().filter(|part| self.only.is_none_or(|only| only == *part)) {
            if let Some(mut operator) = reach.open(part, Purpose::Use).await? {
                refuse_postgres(&mut operator).await?;
                operators.push((part, operator));
            }
        }
        if operators.is_empty() {
            return Err(reach.no_state_failure());
        }
        let left_out = left_out(&reach.data_dir().await?);
        let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot write {name}: {error}"));
        let dir = match self.file.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        // Mode 0600; deleted if it is not completed.
        let mut draft = tempfile::Builder::new()
            .prefix(".talon-backup-")
            .tempfile_in(dir)
            .map_err(|error| failed(&error))?;
        let manifest = write(&mut operators, draft.as_file_mut(), &name).await?;
        drop(operators);
        draft.as_file().sync_all().map_err(|error| failed(&error))?;
        let kept =
            if self.overwrite { draft.persist(&self.file) } else { draft.persist_noclobber(&self.file) };
        match kept {
            Ok(_file) => {}
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists()),
            Err(error) => return Err(failed(&error.error)),
        }
        sync_dir(dir).map_err(|error| failed(&error))?;
        print_summary(&name, &manifest, &left_out, out);
        Ok(exit::OK)
    }
}

/// What a backup never has, and a whole recovery on another machine needs, as far as it is there. Who reads the
/// keys of receipts can forge them, so they do not lie beside the record that they are to prove.
fn left_out(data_dir: &Path) -> Vec<PathBuf> {
    let places = LEFT_OUT.into_iter().map(|place| data_dir.join(place));
    places.filter(|place| place.symlink_metadata().is_ok()).collect()
}

/// Fails with advice if the database is on a server.
pub(super) async fn refuse_postgres(operator: &mut Operator) -> Result<(), Failure> {
    let about = operator.client.describe(DescribeRequest::default()).await;
    let about = about.map_err(|status| operator.failure(&status))?.into_inner();
    if about.engine != "postgres" {
        return Ok(());
    }
    Err(Failure::new(
        exit::CONFIG,
        "state is kept by a PostgreSQL server: back it up with pg_dump and restore it with pg_restore; `talon export DIR` \
         writes it as YAML",
    ))
}

async fn write(
    operators: &mut [(StatePart, Operator)],
    to: &mut File,
    name: &str,
) -> Result<Manifest, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot write {name}: {error}"));
    let progress = progress::bytes("backing up", 0);
    let mut writer = BackupWriter::new(to);
    for (part, operator) in operators {
        let copy = write_part(operator, *part, &mut writer, name, &progress).await?;
        writer.add_database(copy);
    }
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    writer.finish(now).map_err(|error| failed(&error))
}

async fn write_part<W: Write + Seek>(
    operator: &mut Operator,
    part: StatePart,
    writer: &mut BackupWriter<'_, W>,
    name: &str,
    progress: &TransientBar,
) -> Result<DatabaseCopy, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot write {name}: {error}"));
    let stream = operator.client.backup(BackupRequest {}).await;
    let mut stream = stream.map_err(|status| operator.failure(&status))?.into_inner();
    let foreign = || Failure::failed("the service sent what is no backup: is it of another version?");
    let begin = match next_message(operator, &mut stream).await? {
        backup_chunk::Kind::Begin(begin) if begin.layers() == part.layers() => begin,
        _ => return Err(foreign()),
    };
    progress.inc_length(begin.bytes);
    let mut arrived = 0;
    let mut entry = writer.begin_database(part, begin.schema_version).map_err(|error| failed(&error))?;
    let end = loop {
        match next_message(operator, &mut stream).await? {
            // More bytes than announced could fill the disk.
            backup_chunk::Kind::Data(bytes) if arrived + bytes.len() as u64 > begin.bytes => {
                return Err(foreign());
            }
            backup_chunk::Kind::Data(bytes) => {
                arrived += bytes.len() as u64;
                entry.write(&bytes).map_err(|error| failed(&error))?;
                progress.inc(bytes.len() as u64);
            }
            backup_chunk::Kind::End(end) => break end,
            backup_chunk::Kind::Begin(_) => return Err(foreign()),
        }
    };
    let copy = entry.finish().map_err(|error| failed(&error))?;
    if copy.bytes != begin.bytes || copy.sha256 != end.sha256 {
        return Err(Failure::failed("what arrived is not what was sent: try again"));
    }
    Ok(copy)
}

async fn next_message(
    operator: &mut Operator,
    stream: &mut Streaming<BackupChunk>,
) -> Result<backup_chunk::Kind, Failure> {
    loop {
        match stream.message().await.map_err(|status| operator.failure(&status))? {
            Some(BackupChunk { kind: Some(kind) }) => return Ok(kind),
            // Ignore messages of a newer service.
            Some(BackupChunk { kind: None }) => {}
            None => return Err(Failure::failed("the backup ended before it was whole: try again")),
        }
    }
}

fn print_summary(name: &str, manifest: &Manifest, left_out: &[PathBuf], out: &mut Output) {
    let left_out: Vec<String> = left_out.iter().map(|place| place.display().to_string()).collect();
    if out.is_json() {
        let created_at = &manifest.created_at;
        out.json(
            &json!({ "file": name, "created_at": created_at, "parts": parts(manifest), "left_out": left_out }),
        );
        return;
    }
    for copy in &manifest.parts {
        let what = copy.part().map(StatePart::label).unwrap_or_default();
        let size = sanitized_line(HumanBytes(copy.bytes));
        out.line(sanitized!("{}: {}, schema {}", what, size, copy.schema_version));
    }
    out.line(sanitized!("wrote {}", sanitized_line(name)));
    if !left_out.is_empty() {
        let places = sanitized_line(left_out.join(" and "));
        out.line(sanitized!(
            "not in it, for another place and other readers: {}; copy them as you copy secrets",
            places
        ));
    }
}

/// The contents of a backup as JSON.
pub(super) fn parts(manifest: &Manifest) -> Value {
    serde_json::to_value(&manifest.parts).unwrap_or_default()
}
