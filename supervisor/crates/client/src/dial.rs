//! The connection to a supervisor.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use talon_listen::{FRAME_BYTES, ShortPath, WINDOW_BYTES};
use talon_wire::{BusyFlag, CoalescingWriter, Connector, LazyWritable};
use tokio::net::UnixStream;
use tokio::time::Instant;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::until_end::ReadUntilEnd;

/// How long to wait for a place in the listener's queue: a supervisor that accepts connections frees
/// thousands of them a second. Then connecting fails with [`io::ErrorKind::WouldBlock`].
const QUEUE_WAIT: Duration = Duration::from_secs(5);
/// The pause between two attempts: it doubles from the first to the longest. Short, because other clients
/// wait for the same places.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

/// Connects to a supervisor's socket; its path may be of any length.
///
/// # Errors
/// The error of connecting, or one that holds a [`talon_listen::UntrustedListenerError`] if the listener is
/// not trusted to be a supervisor; nothing is sent to it then.
pub async fn dial(path: &Path) -> io::Result<UnixStream> {
    let short = ShortPath::of_file(path)?;
    let stream = connect_in_turn(short.as_path()).await?;
    talon_listen::check_listener(&stream, path)?;
    Ok(stream)
}

/// Connects as a blocking socket does, which waits while the listener's queue is full; a non-blocking one
/// fails.
async fn connect_in_turn(path: &Path) -> io::Result<UnixStream> {
    let until = Instant::now() + QUEUE_WAIT;
    let mut pause = FIRST_PAUSE;
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            connected => return connected,
        }
    }
}

/// Whether the error means that no process listens: there is no socket, or that of a dead supervisor.
#[must_use]
pub fn is_not_listening(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The connection was not made, so the request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect: {0}")]
pub(crate) struct NotConnectedError(#[source] pub(crate) io::Error);

/// The error of connecting, if a request failed for that reason.
#[must_use]
pub fn connect_error(status: &Status) -> Option<&io::Error> {
    causes(status)
        .find_map(|cause| cause.downcast_ref::<NotConnectedError>())
        .map(|NotConnectedError(error)| error)
}

/// An error's causes, outermost first.
pub(crate) fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(status.source(), |&error| error.source())
}

/// A channel on an existing connection, which is made again when it ends.
///
/// # Errors
/// When the other end closes it at once.
pub async fn channel(first: UnixStream, path: PathBuf) -> Result<Channel, tonic::transport::Error> {
    channel_of_calls(first, path, BusyFlag::default()).await
}

/// The same for a client that says whether it has many calls.
pub(crate) async fn channel_of_calls(
    first: UnixStream,
    path: PathBuf,
    busy: BusyFlag,
) -> Result<Channel, tonic::transport::Error> {
    let met = Arc::new(AtomicBool::new(true));
    connector(Some(first), connect_to(path), met, busy).connect(endpoint()).await
}

/// Makes a connection whenever there is none. Errors that mean "no listener yet"
/// ([`io::ErrorKind::NotFound`], `ConnectionRefused`, `WouldBlock`) are retried within
/// [`crate::RECONNECT_WINDOW`]; others are not.
pub type Connect = Arc<dyn Fn() -> Connecting + Send + Sync>;

/// One attempt of [`Connect`].
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send>>;

fn connect_to(path: PathBuf) -> Connect {
    Arc::new(move || {
        let path = path.clone();
        Box::pin(async move { dial(&path).await })
    })
}

/// A channel that connects at the first request. `met` is set once it has connected.
pub(crate) fn lazy(path: PathBuf, met: Arc<AtomicBool>, busy: BusyFlag) -> Channel {
    with_connector(connect_to(path), met, busy)
}

/// The same with a custom connector.
pub(crate) fn with_connector(connect: Connect, met: Arc<AtomicBool>, busy: BusyFlag) -> Channel {
    connector(None, connect, met, busy).connect_lazy(&endpoint())
}

fn endpoint() -> Endpoint {
    Endpoint::from_static("http://talon.invalid")
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
}

fn connector(
    mut first: Option<UnixStream>,
    connect: Connect,
    met: Arc<AtomicBool>,
    busy: BusyFlag,
) -> Connector {
    Connector::new(move || {
        let (first, connect, met, busy) =
            (first.take(), Arc::clone(&connect), Arc::clone(&met), busy.clone());
        async move {
            let stream = match first {
                Some(stream) => stream,
                None => connect().await.map_err(NotConnectedError)?,
            };
            met.store(true, Ordering::Relaxed);
            let mut stream = LazyWritable::new(stream).map_err(NotConnectedError)?;
            stream.set_busy_flag(&busy);
            Ok::<_, NotConnectedError>(CoalescingWriter::new(ReadUntilEnd::new(stream)))
        }
    })
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    use super::*;

    // Promises: CLI-54
    #[tokio::test]
    async fn a_full_queue_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("host.sock");
        let fd = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&fd, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&fd, 0).unwrap();
        let listener = std::os::unix::net::UnixListener::from(fd);
        let mut waiting = Vec::new();
        loop {
            match UnixStream::connect(&path).await {
                Ok(stream) => waiting.push(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let dialled = tokio::spawn({
            let path = path.clone();
            async move { dial(&path).await }
        });
        tokio::task::yield_now().await;
        assert!(!dialled.is_finished());
        let count = waiting.len() + 1;
        let accepted = tokio::task::spawn_blocking(move || {
            (0..count).map(|_| listener.accept().map(|(stream, _)| stream)).collect::<io::Result<Vec<_>>>()
        });
        dialled.await.unwrap().unwrap();
        assert_eq!(accepted.await.unwrap().unwrap().len(), count);
    }
}
