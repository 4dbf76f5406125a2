//! The founding layout as streams: `Export` and `Import`.

use std::future::{Future, ready};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use talon_child::chain;
use talon_proto::state::{ExportChunk, ImportChunk, ImportFile, ImportOptions, ImportReport, import_chunk};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::{Pieces, next};
use crate::database::Database;
use crate::exchange::limits::{MAX_FILE_BYTES, MAX_PATH_BYTES};
use crate::exchange::{ExportError, ImportStopped, Importer, export as write_out};
use crate::failure::{Asker, cut};
use crate::limits::MAX_STREAMED;

/// Sends what there is, as fast as it is taken.
pub(super) fn export(
    database: Arc<Database>,
    closed: CancellationToken,
) -> Result<Pieces<ExportChunk>, Status> {
    let store = database.store()?.clone();
    Ok(streamed(closed, move |to| async move {
        write_out(&store, database.layers, to).await.map_err(|error| match error {
            ExportError::Store(error) => database.failed(&error, Asker::Operator),
            ExportError::Deleted(_) => Status::aborted(error.to_string()),
            other => Status::internal(cut(chain(&other))),
        })
    }))
}

/// Takes in what comes, file by file, and reports on each.
pub(super) fn import(
    database: Arc<Database>,
    from: Streaming<ImportChunk>,
    closed: CancellationToken,
) -> Result<Pieces<ImportReport>, Status> {
    let store = database.store()?.clone();
    Ok(streamed(closed, move |to| async move {
        // Each holds a whole file at a time.
        let _turn = database.imports.lock().await;
        let mut incoming = Incoming { from, put_back: None, skipping: false };
        let ImportOptions { dry_run } = incoming.options().await?;
        let mut importer = Importer::new(store, database.layers, dry_run);
        while let Some(file) = incoming.file().await? {
            let taken = match file {
                Incomer::Whole { path, bytes } => importer.file(&path, bytes, &to).await,
                Incomer::TooLarge { path } => importer.too_large(&path, &to).await,
            };
            taken.map_err(|error| match error {
                ImportStopped::Store(error) => database.failed(&error, Asker::Operator),
                other => Status::cancelled(other.to_string()),
            })?;
        }
        // An operator who has gone needs no end.
        let _heard = to.send(importer.done()).await;
        Ok(())
    }))
}

/// Runs what fills a stream, and ends the stream with what it failed of. It ends with the process; and when nobody takes
/// the stream any more, since nothing can be sent then.
fn streamed<T, F>(closed: CancellationToken, fill: impl FnOnce(mpsc::Sender<T>) -> F) -> Pieces<T>
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
        // Whoever does not listen any more wants no reason.
        let _told = ended.map_err(|status| failed.send(status));
    });
    let last = stream::once(failure).filter_map(|failed| ready(failed.ok().map(Err)));
    ReceiverStream::new(pieces).map(Ok).chain(last).boxed()
}

/// What comes, put together to files.
struct Incoming {
    from: Streaming<ImportChunk>,
    /// The beginning of the next file, which ended the one before.
    put_back: Option<ImportFile>,
    /// What comes until the next file is the rest of one that is refused.
    skipping: bool,
}

/// A file that came.
enum Incomer {
    Whole {
        path: String,
        bytes: Vec<u8>,
    },
    /// Told as soon as it is known: the rest of the file may be long.
    TooLarge {
        path: String,
    },
}

impl Incoming {
    async fn said(&mut self) -> Result<Option<import_chunk::What>, Status> {
        let Some(chunk) = next(&mut self.from).await? else { return Ok(None) };
        chunk.what.map(Some).ok_or_else(|| Status::invalid_argument("a part of the import says nothing"))
    }

    async fn options(&mut self) -> Result<ImportOptions, Status> {
        match self.said().await? {
            Some(import_chunk::What::Options(options)) => Ok(options),
            _ => Err(Status::invalid_argument("an import begins with `options`")),
        }
    }

    /// How the next file begins.
    async fn begin(&mut self) -> Result<Option<ImportFile>, Status> {
        if let Some(begin) = self.put_back.take() {
            return Ok(Some(begin));
        }
        loop {
            match self.said().await? {
                None => return Ok(None),
                Some(import_chunk::What::Begin(begin)) => {
                    self.skipping = false;
                    return Ok(Some(begin));
                }
                Some(import_chunk::What::Data(_)) if self.skipping => {}
                Some(_) => return Err(Status::invalid_argument("a file begins with `begin`")),
            }
        }
    }

    /// The next file. No more of one is held than may be read.
    async fn file(&mut self) -> Result<Option<Incomer>, Status> {
        let Some(ImportFile { path }) = self.begin().await? else { return Ok(None) };
        if path.len() > MAX_PATH_BYTES {
            return Err(Status::invalid_argument(format!("a path may have {MAX_PATH_BYTES} bytes")));
        }
        let mut bytes = Vec::new();
        loop {
            match self.said().await? {
                None => break,
                Some(import_chunk::What::Data(data)) => {
                    if bytes.len() + data.len() > MAX_FILE_BYTES {
                        self.skipping = true;
                        return Ok(Some(Incomer::TooLarge { path }));
                    }
                    bytes.extend_from_slice(&data);
                }
                Some(import_chunk::What::Begin(begin)) => {
                    self.put_back = Some(begin);
                    break;
                }
                Some(import_chunk::What::Options(_)) => {
                    return Err(Status::invalid_argument("an import has one `options`, at its beginning"));
                }
            }
        }
        Ok(Some(Incomer::Whole { path, bytes }))
    }
}
