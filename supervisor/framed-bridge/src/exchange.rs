//! Calls to the program: one question and one answer at a time on a connection.
//!
//! Nothing in an answer ties it to its question but the connection (the id is the program's to copy). So a connection is used by
//! one call at a time, and one whose call was given up, or whose answer was none, is never used again: what is still on its way
//! on it would be taken for the answer to something else.
//!
//! A connection that is idle is kept only while no other is in use. The first host had one connection for all calls, and
//! programs that were written by hand may serve one after the other: those would wait for ever for the next question on the idle
//! one, and never come to the next.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use crate::frame::{self, FrameError};
use crate::message::{self, Request, Response};
use crate::say::shown;

/// How many calls are with the program at once; further ones wait here for their turn, inside their own time. Twice as many as a
/// supervisor lets through unless told, and each may hold an answer of 4 MiB.
const MAX_CONNECTIONS: usize = 32;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// Nobody is there.
    #[error("cannot connect to its socket {}: {source}; it has to listen before it prints its handshake line, and go on listening", socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The question cannot be written.
    #[error("the call cannot be written as JSON: {0}")]
    Encode(#[source] serde_json::Error),
    /// No message came, or none could be sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// What came is no answer.
    #[error("its answer cannot be read: {0}; it has to be JSON as in OpenTalon v0.0.1")]
    Decode(#[source] serde_json::Error),
    /// It answered something else.
    #[error(
        "it answered call {theirs} when it was asked {ours}, so its answer was thrown away; correct the plugin's program, which has to copy the id into call_id"
    )]
    OtherCall {
        /// What it says.
        theirs: String,
        /// What was asked.
        ours: String,
    },
}

/// The way to the program.
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

    /// Asks and waits for the answer, for as long as the caller does. Dropping this ends the connection, which is all the
    /// program is told of it.
    pub(crate) async fn ask(&self, request: &Request<'_>) -> Result<Response, AskError> {
        let body = serde_json::to_vec(request).map_err(AskError::Encode)?;
        // It is never closed, so there is no error but to wait.
        let _turn = self.turns.acquire().await;
        let mut connection = self.connection().await?;
        frame::write(&mut connection.stream, &body).await?;
        let answer = frame::read(&mut connection.stream).await?;
        let answer = message::decode(&answer).map_err(AskError::Decode)?;
        if !answer.call_id.is_empty() && answer.call_id != request.id {
            let (theirs, ours) = (shown(&answer.call_id), shown(request.id));
            return Err(AskError::OtherCall { theirs, ours });
        }
        connection.give_back();
        Ok(answer)
    }

    async fn connection(&self) -> Result<InUse<'_>, AskError> {
        let held = Held::new(self);
        let idle = self.connections().idle.take();
        let stream = match idle.filter(is_quiet) {
            Some(stream) => stream,
            None => UnixStream::connect(&self.socket)
                .await
                .map_err(|source| AskError::Connect { socket: self.socket.clone(), source })?,
        };
        Ok(InUse { stream, held })
    }

    /// Nothing can panic while it is held.
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an idle connection is still there, and nothing came on it unasked.
fn is_quiet(stream: &UnixStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(recv(stream, &mut [0_u8; 1][..], flags), Err(Errno::AGAIN))
}

/// Counts a connection for as long as a call has it.
struct Held<'e>(&'e Exchange);

impl<'e> Held<'e> {
    fn new(exchange: &'e Exchange) -> Self {
        exchange.connections().in_use += 1;
        Self(exchange)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.connections().in_use -= 1;
    }
}

/// A connection that a call has. Dropping it closes it.
struct InUse<'e> {
    stream: UnixStream,
    held: Held<'e>,
}

impl InUse<'_> {
    /// For the next call, unless another is in use.
    fn give_back(self) {
        let Self { stream, held } = self;
        let mut connections = held.0.connections();
        if connections.in_use == 1 {
            connections.idle = Some(stream);
        }
        drop(connections);
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
