//! `talon backup`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use indicatif::HumanBytes;
use serde_json::{Value, json};
use talon_proto::state::{BackupChunk, BackupRequest, DescribeRequest, DescribeResponse, backup_chunk};
use talon_sanitize::sanitized;
use tonic::Streaming;

use super::archive::{BackupWriter, DatabaseCopy, Manifest};
use super::progress;
use super::storage::{BackupStorage, StoredBackup};
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

/// The keys of receipts, which plugin has which uid, and what was changed of the configuration, which is no state.
const LEFT_OUT: [&str; 3] = ["receipts", "identities.json", "overlay.yaml"];

/// The engine's name of state that a plugin keeps.
const PLUGIN_ENGINE: &str = "plugin";

/// Write all state into one file, with a consistent snapshot of each database.
///
/// The databases stay in use meanwhile. `talon restore` restores the file. For a PostgreSQL server use
/// pg_dump. The keys of receipts and the plugins' identities are not in it: the output names them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon backup /var/backups/talon-$(date +%F).tar
  talon backup today.tar --overwrite
  talon backup --to valkey.store monday
  talon backup --to valkey.store --list
  talon restore today.tar --check")]
pub(crate) struct BackupArgs {
    /// The file to write, a tar. It appears only when it is complete. With --to, the name of the backup.
    #[arg(value_name = "FILE", required_unless_present = "list")]
    file: Option<PathBuf>,
    /// Store it by this action, as plugin.action, which plays the role storage_backend.
    #[arg(long, value_name = "ACTION")]
    to: Option<String>,
    /// List the backups that are stored there.
    #[arg(long, requires = "to", conflicts_with_all = ["file", "overwrite", "only"])]
    list: bool,
    /// Replace an existing file.
    #[arg(long)]
    overwrite: bool,
    /// Back up only this part.
    #[arg(long, value_enum, value_name = "PART")]
    only: Option<StatePart>,
}

impl BackupArgs {
    pub(crate) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let file = self.file.clone().unwrap_or_default();
        if let Some(action) = &self.to {
            return self.store(global, out, action, &file.display().to_string()).await;
        }
        let name = file.display().to_string();
        if file.as_os_str() == OsStr::new("-") {
            return Err(Failure::usage(
                "a backup is written to a file, which appears when it is whole: name one",
            ));
        }
        let exists =
            || Failure::usage(format!("{name} is there already: choose another name, or say --overwrite"));
        if !self.overwrite && file.symlink_metadata().is_ok() {
            return Err(exists());
        }
        let (mut operators, left_out) = self.operators(global, out).await?;
        let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("cannot write {name}: {error}"));
        let dir = match file.parent() {
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
        let kept = if self.overwrite { draft.persist(&file) } else { draft.persist_noclobber(&file) };
        match kept {
            Ok(_file) => {}
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists()),
            Err(error) => return Err(failed(&error.error)),
        }
        sync_dir(dir).map_err(|error| failed(&error))?;
        print_summary(&name, &manifest, &left_out, out);
        Ok(exit::OK)
    }

    /// Stores it in a storage backend.
    async fn store(
        &self,
        global: &Global,
        out: &mut Output,
        action: &str,
        name: &str,
    ) -> Result<u8, Failure> {
        let storage = BackupStorage::find(global, action).await?;
        if self.list {
            print_list(&storage.list().await?, out);
            return Ok(exit::OK);
        }
        let draft = storage.begin(name, self.overwrite).await?;
        let (mut operators, left_out) = self.operators(global, out).await?;
        // Without a name, and gone with this process.
        let file = tempfile::tempfile();
        let mut file =
            file.map_err(|error| Failure::failed(format!("cannot write a temporary file: {error}")))?;
        let manifest = write(&mut operators, &mut file, name).await?;
        drop(operators);
        let old = storage.write(draft, &mut file, manifest.created_at.clone()).await?;
        if let Err(failure) = storage.remove(&old).await {
            out.err_line(sanitized!(
                "the backup is stored; what earlier ones left is removed by the next one under this name: {}",
                sanitized_line(failure.to_string())
            ));
        }
        print_summary(&format!("{name} at {action}"), &manifest, &left_out, out);
        Ok(exit::OK)
    }

    /// What is backed up, and what is left out.
    async fn operators(
        &self,
        global: &Global,
        out: &mut Output,
    ) -> Result<(Vec<(StatePart, Operator)>, Vec<PathBuf>), Failure> {
        let mut reach = StateAccess::find(global).await?;
        let mut operators = Vec::new();
        for part in StatePart::ALL.into_iter().filter(|part| self.only.is_none_or(|only| only == *part)) {
            if let Some(mut operator) = reach.open(part, Purpose::Use).await? {
                let about = describe(&mut operator).await?;
                if about.engine == PLUGIN_ENGINE && self.only.is_none() {
                    out.err_line(sanitized!(
                        "not in it: {}, kept by {}: back that up with the tools of what stands behind that plugin",
                        part.label(),
                        sanitized_line(&about.place)
                    ));
                    continue;
                }
                refuse_other_engines(&about)?;
                operators.push((part, operator));
            }
        }
        if operators.is_empty() {
            return Err(reach.no_state_failure());
        }
        let left_out = left_out(&reach.data_dir().await?);
        Ok((operators, left_out))
    }
}

fn print_list(stored: &[(String, Result<StoredBackup, &'static str>)], out: &mut Output) {
    if out.is_json() {
        let row = |(name, stored): &(String, Result<StoredBackup, &'static str>)| match stored {
            Ok(stored) => json!({ "name": name, "created_at": stored.created_at, "bytes": stored.bytes }),
            Err(why) => json!({ "name": name, "problem": why }),
        };
        out.json(&json!({ "backups": stored.iter().map(row).collect::<Vec<_>>() }));
        return;
    }
    for (name, stored) in stored {
        match stored {
            Ok(stored) => {
                let (created_at, size) =
                    (sanitized_line(&stored.created_at), sanitized_line(HumanBytes(stored.bytes)));
                out.line(sanitized!("{}: {}, {}", sanitized_line(name), created_at, size));
            }
            Err(why) => out.line(sanitized!("{}: {}", sanitized_line(name), sanitized_line(why))),
        }
    }
}

/// What a backup never has, and a whole recovery on another machine needs, as far as it is there. Who reads the
/// keys of receipts can forge them, so they do not lie beside the record that they are to prove.
fn left_out(data_dir: &Path) -> Vec<PathBuf> {
    let places = LEFT_OUT.into_iter().map(|place| data_dir.join(place));
    places.filter(|place| place.symlink_metadata().is_ok()).collect()
}

async fn describe(operator: &mut Operator) -> Result<DescribeResponse, Failure> {
    let about = operator.client.describe(DescribeRequest::default()).await;
    Ok(about.map_err(|status| operator.failure(&status))?.into_inner())
}

/// Fails with advice if the state is no file of ours.
pub(super) async fn refuse_servers(operator: &mut Operator) -> Result<(), Failure> {
    refuse_other_engines(&describe(operator).await?)
}

fn refuse_other_engines(about: &DescribeResponse) -> Result<(), Failure> {
    if about.engine == PLUGIN_ENGINE {
        let text = format!(
            "the plugins' state is kept by {}: back it up and restore it with the tools of what stands behind that plugin; \
             `talon export DIR --only plugins` writes it as YAML",
            about.place
        );
        return Err(Failure::new(exit::CONFIG, text));
    }
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
