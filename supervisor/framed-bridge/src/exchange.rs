//! Calls to the program: one request and one response at a time on a connection.
//!
//! Only the connection ties a response to its request (the program copies the id, or not). So a connection
//! serves one call at a time. It is never reused after a cancelled call or an invalid response: a late
//! response on it would be taken for the response to another request.
//!
//! An idle connection is kept only while no other is in use. The original host had one connection for all
//! calls, and a hand-written program may serve its connections one after the other: it would wait for ever
//! for the next request on the idle connection, and never accept the next one.

use std::io;
use std::path::PathBuf;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use talon_bridge::text::quoted;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use crate::frame::{self, FrameError};
use crate::message::{self, Request, Response};

/// How many calls the program serves at once; further ones wait here, within their deadline. Twice as many as
/// a supervisor admits by default, and each may hold a response of 4 MiB.
const MAX_CONNECTIONS: usize = 32;

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// No program listens on the socket.
    #[error("cannot connect to its socket {}: {source}; it has to listen before it prints its handshake line, and go on listening", socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The request cannot be encoded.
    #[error("the call cannot be written as JSON: {0}")]
    Encode(#[source] serde_json::Error),
    /// No message came, or none could be sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The message is not a response.
    #[error("its answer cannot be read: {0}; it has to be JSON as in OpenTalon v0.0.1")]
    Decode(#[source] serde_json::Error),
    /// It answered another request.
    #[error(
        "it answered call {theirs} when it was asked {ours}, so its answer was thrown away; correct the plugin's program, which has to copy the id into call_id"
    )]
    OtherCall {
        /// The id in the response.
        theirs: String,
        /// The id of the request.
        ours: String,
    },
}

/// The connections to the program.
#[derive(Debug)]
pub(crate) struct Exchange {
    socket: PathBuf,
    connections: Mutex<Connections>,
    turns: Semaphore,
}

#[derive(Debug, Default)]
struct Connections {
    idle: Option<UnixStream>,
    in_use: usize,
}

impl Exchange {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket, connections: Mutex::default(), turns: Semaphore::new(MAX_CONNECTIONS) }
    }

    /// Sends a request and waits for the response, for as long as the caller does. Dropping this future
    /// closes the connection; the protocol has no other cancellation.
    pub(crate) async fn request(&self, request: &Request<'_>) -> Result<Response, ExchangeError> {
        let body = serde_json::to_vec(request).map_err(ExchangeError::Encode)?;
        // The semaphore is never closed, so there is no error.
        let _turn = self.turns.acquire().await;
        let mut connection = self.connection().await?;
        frame::write(&mut connection.stream, &body).await?;
        let answer = frame::read(&mut connection.stream).await?;
        let answer = message::decode(&answer).map_err(ExchangeError::Decode)?;
        if !answer.call_id.is_empty() && answer.call_id != request.id {
            let (theirs, ours) = (quoted(&answer.call_id), quoted(request.id));
            return Err(ExchangeError::OtherCall { theirs, ours });
        }
        connection.give_back();
        Ok(answer)
    }

    async fn connection(&self) -> Result<InUse<'_>, ExchangeError> {
        let held = ConnectionGuard::new(self);
        let idle = self.connections.lock().idle.take();
        let stream = match idle.filter(is_idle) {
            Some(stream) => stream,
            None => UnixStream::connect(&self.socket)
                .await
                .map_err(|source| ExchangeError::Connect { socket: self.socket.clone(), source })?,
        };
        Ok(InUse { stream, guard: held })
    }
}

/// Whether an idle connection is still open and has received nothing.
fn is_idle(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(stream, &mut [0_u8; 1][..], flags), Err(Errno::AGAIN))
}

/// Counts a connection for as long as a call uses it.
struct ConnectionGuard<'e>(&'e Exchange);

impl<'e> ConnectionGuard<'e> {
    fn new(exchange: &'e Exchange) -> Self {
        exchange.connections.lock().in_use += 1;
        Self(exchange)
    }
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.0.connections.lock().in_use -= 1;
    }
}

/// A connection in use by a call. Dropping it closes it.
struct InUse<'e> {
    stream: UnixStream,
    guard: ConnectionGuard<'e>,
}

impl InUse<'_> {
    /// Keeps it for the next call, unless another is in use.
    fn give_back(self) {
        let Self { stream, guard: held } = self;
        let mut connections = held.0.connections.lock();
        if connections.in_use == 1 {
            connections.idle = Some(stream);
        }
        drop(connections);
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
