//! `Export` and `Import`: the founding layout as streams.

use std::future::{Future, ready};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use talon_error_chain::error_chain;
use talon_proto::state::{ExportChunk, ImportChunk, ImportFile, ImportOptions, ImportReport, import_chunk};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::stream::{ResponseStream, next};
use crate::database::Database;
use crate::exchange::limits::{MAX_FILE_BYTES, MAX_PATH_BYTES};
use crate::exchange::{ExportError, ImportError, Importer, export as write_out};
use crate::failure::Requester;
use crate::limits::MAX_STREAMED;

/// Sends all records, as fast as the client reads.
pub(super) fn export(
    database: Arc<Database>,
    closed: CancellationToken,
) -> Result<ResponseStream<ExportChunk>, Status> {
    let store = database.store()?.clone();
    Ok(stream_from(closed, move |to| async move {
        write_out(&store, database.layers, to).await.map_err(|error| match error {
            ExportError::Store(error) => database.failed(&error, Requester::Operator),
            ExportError::Deleted(_) => Status::aborted(error.to_string()),
            other => Status::internal(error_chain(&other)),
        })
    }))
}

/// Imports the stream file by file, and reports on each.
pub(super) fn import(
    database: Arc<Database>,
    from: Streaming<ImportChunk>,
    closed: CancellationToken,
) -> Result<ResponseStream<ImportReport>, Status> {
    let store = database.store()?.clone();
    Ok(stream_from(closed, move |to| async move {
        // One import at a time: each holds a whole file.
        let _turn = database.imports.lock().await;
        let mut incoming = FileAssembler { from, pending_header: None, skipping: false };
        let ImportOptions { dry_run, sender } = incoming.options().await?;
        let mut importer = Importer::new(store, database.layers, dry_run);
        if !sender.is_empty() {
            importer = importer.with_sender(&sender).map_err(Status::invalid_argument)?;
        }
        while let Some(file) = incoming.file().await? {
            let taken = match file {
                ReceivedFile::Whole { path, bytes } => importer.import_file(&path, bytes, &to).await,
                ReceivedFile::TooLarge { path } => importer.refuse_large_file(&path, &to).await,
            };
            taken.map_err(|error| match error {
                ImportError::Store(error) => database.failed(&error, Requester::Operator),
                other => Status::cancelled(other.to_string()),
            })?;
        }
        // A client that has gone needs no end message.
        let _sent = to.send(importer.into_report()).await;
        Ok(())
    }))
}

/// Runs the task that fills a stream, and ends the stream with the task's error if it fails. The task ends
/// with the process, and when the client has gone, since nothing can be sent then.
fn stream_from<T, F>(closed: CancellationToken, fill: impl FnOnce(mpsc::Sender<T>) -> F) -> ResponseStream<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (to, pieces) = mpsc::channel(MAX_STREAMED);
    let (failed, failure) = oneshot::channel();
    let filling = fill(to);
    tokio::spawn(async move {
        let ended = tokio::select! {
            ended = filling => ended,
            () = closed.cancelled() => Err(Status::unavailable("the state service is ending: try again")),
        };
        // If the client has gone, it needs no reason.
        let _sent = ended.map_err(|status| failed.send(status));
    });
    let last = stream::once(failure).filter_map(|failed| ready(failed.ok().map(Err)));
    ReceiverStream::new(pieces).map(Ok).chain(last).boxed()
}

/// Assembles the chunks of a stream to files.
struct FileAssembler {
    from: Streaming<ImportChunk>,
    /// The header of the next file, which ended the one before.
    pending_header: Option<ImportFile>,
    /// The chunks until the next file belong to one that is refused.
    skipping: bool,
}

/// A received file.
enum ReceivedFile {
    Whole {
        path: String,
        bytes: Vec<u8>,
    },
    /// Returned as soon as the size is known: the rest of the file may be long.
    TooLarge {
        path: String,
    },
}

impl FileAssembler {
    async fn next_part(&mut self) -> Result<Option<import_chunk::Kind>, Status> {
        let Some(chunk) = next(&mut self.from).await? else { return Ok(None) };
        chunk.kind.map(Some).ok_or_else(|| Status::invalid_argument("a part of the import says nothing"))
    }

    async fn options(&mut self) -> Result<ImportOptions, Status> {
        match self.next_part().await? {
            Some(import_chunk::Kind::Options(options)) => Ok(options),
            _ => Err(Status::invalid_argument("an import begins with `options`")),
        }
    }

    /// The header of the next file.
    async fn next_header(&mut self) -> Result<Option<ImportFile>, Status> {
        if let Some(begin) = self.pending_header.take() {
            return Ok(Some(begin));
        }
        loop {
            match self.next_part().await? {
                None => return Ok(None),
                Some(import_chunk::Kind::Begin(begin)) => {
                    self.skipping = false;
                    return Ok(Some(begin));
                }
                Some(import_chunk::Kind::Data(_)) if self.skipping => {}
                Some(_) => return Err(Status::invalid_argument("a file begins with `begin`")),
            }
        }
    }

    /// The next file. At most the size limit is held in memory.
    async fn file(&mut self) -> Result<Option<ReceivedFile>, Status> {
        let Some(ImportFile { path }) = self.next_header().await? else { return Ok(None) };
        if path.len() > MAX_PATH_BYTES {
            return Err(Status::invalid_argument(format!("a path may have {MAX_PATH_BYTES} bytes")));
        }
        let mut bytes = Vec::new();
        loop {
            match self.next_part().await? {
                None => break,
                Some(import_chunk::Kind::Data(data)) => {
                    if bytes.len() + data.len() > MAX_FILE_BYTES {
                        self.skipping = true;
                        return Ok(Some(ReceivedFile::TooLarge { path }));
                    }
                    bytes.extend_from_slice(&data);
                }
                Some(import_chunk::Kind::Begin(begin)) => {
                    self.pending_header = Some(begin);
                    break;
                }
                Some(import_chunk::Kind::Options(_)) => {
                    return Err(Status::invalid_argument("an import has one `options`, at its beginning"));
                }
            }
        }
        Ok(Some(ReceivedFile::Whole { path, bytes }))
    }
}
