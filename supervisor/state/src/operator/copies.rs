//! Whole databases: `Backup` and `Restore`.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::stream::StreamExt as _;
use sha2::{Digest as _, Sha256};
use talon_proto::state::{
    BackupBegin, BackupChunk, BackupEnd, RestoreBegin, RestoreChunk, RestoreEnd, RestoreResponse,
    backup_chunk, restore_chunk,
};
use talon_store::{Error, POSTGRES_BACKUP, POSTGRES_RESTORE};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::scratch::ScratchDir;
use super::stream::{ResponseStream, next};
use crate::database::Database;
use crate::failure::{Requester, truncate};
use crate::limits::{CHUNK_BYTES, MAX_COPY_BYTES, MAX_STREAMED};

/// Copies the database, and then sends the copy.
pub(super) async fn backup(database: Arc<Database>) -> Result<ResponseStream<BackupChunk>, Status> {
    let store = database.store()?;
    let scratch = scratch(database_file(&database, POSTGRES_BACKUP)?).await?;
    let copy = scratch.copy();
    let made = store.backup(&copy).await.map_err(|error| database.failed(&error, Requester::Operator))?;
    let begin = BackupBegin {
        layers: database.layers.into(),
        schema_version: made.schema_version,
        bytes: made.bytes,
    };
    let (to, pieces) = mpsc::channel(MAX_STREAMED);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = send(&copy, begin, &to) {
            // If the client has gone, there is no one to send the reason to.
            let _sent = to.blocking_send(Err(failed("the copy cannot be read", &error)));
        }
        drop(scratch);
    });
    Ok(ReceiverStream::new(pieces).boxed())
}

type BackupSender = mpsc::Sender<Result<BackupChunk, Status>>;

fn send(copy: &Path, begin: BackupBegin, to: &BackupSender) -> io::Result<()> {
    let give = |kind| to.blocking_send(Ok(BackupChunk { kind: Some(kind) })).is_ok();
    let mut copy = File::open(copy)?;
    let mut digest = Sha256::new();
    if !give(backup_chunk::Kind::Begin(begin)) {
        return Ok(());
    }
    loop {
        let mut data = Vec::with_capacity(CHUNK_BYTES);
        (&mut copy).take(CHUNK_BYTES as u64).read_to_end(&mut data)?;
        if data.is_empty() {
            break;
        }
        digest.update(&data);
        if !give(backup_chunk::Kind::Data(data)) {
            return Ok(());
        }
    }
    // A client that has gone meanwhile needs no end message.
    let _sent = give(backup_chunk::Kind::End(BackupEnd { sha256: hex::encode(digest.finalize()) }));
    Ok(())
}

/// Receives a complete copy, and then replaces the database with it.
pub(super) async fn restore(
    database: &Database,
    mut from: Streaming<RestoreChunk>,
) -> Result<RestoreResponse, Status> {
    let file = database_file(database, POSTGRES_RESTORE)?;
    let Some(restore_chunk::Kind::Begin(begin)) = next_part(&mut from).await? else {
        return Err(Status::invalid_argument("a restore begins with `begin`"));
    };
    if begin.layers() != database.layers {
        return Err(Status::failed_precondition(
            "the copy is one of other state: that of plugins, and sessions with memory, are restored each into its own place",
        ));
    }
    if begin.bytes > MAX_COPY_BYTES {
        let text = format!(
            "a copy may have {MAX_COPY_BYTES} bytes, not {}: stop Talon and copy the file itself",
            begin.bytes
        );
        return Err(Status::invalid_argument(text));
    }
    let scratch = scratch(file).await?;
    receive(&scratch.copy(), &begin, &mut from).await?;
    let restored = database.restore(&scratch.copy(), begin.check_only).await;
    let restored = restored.map_err(|error| database.failed(&error, Requester::Operator))?;
    let kept = restored.kept.map(|kept| kept.display().to_string()).unwrap_or_default();
    Ok(RestoreResponse { schema_version: restored.schema_version, kept })
}

async fn next_part(from: &mut Streaming<RestoreChunk>) -> Result<Option<restore_chunk::Kind>, Status> {
    Ok(next(from).await?.and_then(|chunk| chunk.kind))
}

/// Writes the received bytes to a file: exactly as many as were announced.
async fn receive(
    copy: &Path,
    begin: &RestoreBegin,
    from: &mut Streaming<RestoreChunk>,
) -> Result<(), Status> {
    let written = |error: io::Error| failed("the copy cannot be written", &error);
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy).map_err(written)?;
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    loop {
        match next_part(from).await? {
            Some(restore_chunk::Kind::Data(data)) => {
                bytes += data.len() as u64;
                if bytes > begin.bytes {
                    return Err(damaged_copy("it is longer than announced"));
                }
                let work = move || {
                    digest.update(&data);
                    copy.write_all(&data).map(|()| (digest, copy))
                };
                let worked = tokio::task::spawn_blocking(work).await;
                (digest, copy) = worked.map_err(|_| Status::internal("a thread failed"))?.map_err(written)?;
            }
            Some(restore_chunk::Kind::End(RestoreEnd { sha256 })) => {
                return if bytes < begin.bytes {
                    Err(damaged_copy("it is shorter than announced"))
                } else if hex::encode(digest.finalize()) == sha256 {
                    Ok(())
                } else {
                    Err(damaged_copy("its digest is another one"))
                };
            }
            Some(restore_chunk::Kind::Begin(_)) => {
                return Err(Status::invalid_argument("a restore has one copy"));
            }
            None => return Err(damaged_copy("it ends before its end")),
        }
    }
}

fn damaged_copy(why: &str) -> Status {
    Status::invalid_argument(format!("the copy did not arrive whole: {why}. Nothing was changed"))
}

/// The database's file. If the engine has none, the error says what to do instead.
fn database_file(database: &Database, instead: &'static str) -> Result<PathBuf, Status> {
    database.file.clone().ok_or_else(|| database.failed(&Error::Unsupported(instead), Requester::Operator))
}

async fn scratch(file: PathBuf) -> Result<ScratchDir, Status> {
    let made = tokio::task::spawn_blocking(move || ScratchDir::create_beside(&file)).await;
    made.map_err(|_| Status::internal("a thread failed"))?
        .map_err(|error| failed("a place for the copy cannot be made", &error))
}

fn failed(what: &str, error: &io::Error) -> Status {
    let text = truncate(format!("{what} beside the database: {error}"));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Status::resource_exhausted(text),
        _ => Status::internal(text),
    }
}
