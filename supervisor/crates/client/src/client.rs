//! A supervisor by its socket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use talon_listen::Awake;
use talon_proto::host::host_client::HostClient;
use tokio::net::UnixStream;
use tonic::Status;
use tonic::transport::Channel;

use crate::dial::{self, Connect};
use crate::known::{Known, may_pass};
use crate::patience::Patience;

/// The longest answer a client takes unless it says otherwise. Answers are bounded by the supervisor's configuration; this is only
/// a backstop against a configuration of gigabytes.
pub const MAX_ANSWER_BYTES: usize = 256 << 20;

/// How long an answer is waited for awake: a small call through a supervisor takes 60 to 300 µs, which is more than to a plugin.
const MOMENT: Duration = Duration::from_micros(500);

/// A supervisor, by its socket. Cheap to clone; clones share one connection, which is made again when it is gone.
#[derive(Debug, Clone)]
pub struct Client {
    channel: Channel,
    path: PathBuf,
    max_answer_bytes: usize,
    /// Whether there ever was a supervisor: only then it is worth waiting for the next one.
    met: Arc<AtomicBool>,
    /// For whoever waits for a call's answer.
    pub(crate) awake: Arc<Awake>,
}

impl Client {
    /// Connects when there is something to ask. Must be called within a tokio runtime.
    #[must_use]
    pub fn lazy(path: PathBuf) -> Self {
        let met = Arc::new(AtomicBool::new(false));
        let channel = dial::lazy(path.clone(), Arc::clone(&met));
        Self::of(channel, path, met)
    }

    /// One over connections that somebody else makes, as a child gets them from its supervisor. It was started by one, so that the next
    /// one is waited for from the beginning on. Must be called within a tokio runtime.
    #[must_use]
    pub fn through(connect: Connect) -> Self {
        let met = Arc::new(AtomicBool::new(true));
        let channel = dial::through(connect, Arc::clone(&met));
        Self::of(channel, PathBuf::new(), met)
    }

    /// One over a connection that [`dial::dial`] made.
    ///
    /// # Errors
    /// When the other end hangs up at once.
    pub async fn over(first: UnixStream, path: PathBuf) -> Result<Self, tonic::transport::Error> {
        let channel = dial::channel(first, path.clone()).await?;
        let met = Arc::new(AtomicBool::new(true));
        Ok(Self::of(channel, path, met))
    }

    fn of(channel: Channel, path: PathBuf, met: Arc<AtomicBool>) -> Self {
        Self {
            channel,
            path,
            max_answer_bytes: MAX_ANSWER_BYTES,
            met,
            awake: Arc::new(Awake::for_up_to(MOMENT)),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`dial::dial`]; nobody is waited for.
    pub async fn connect(path: PathBuf) -> io::Result<Self> {
        let first = dial::dial(&path).await?;
        Self::over(first, path).await.map_err(io::Error::other)
    }

    /// The same with another bound on answers.
    #[must_use]
    pub fn with_max_answer_bytes(self, max_answer_bytes: usize) -> Self {
        Self { max_answer_bytes, ..self }
    }

    /// The connection, for other services than the host's own.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The generated client, which repeats nothing.
    #[must_use]
    pub fn host(&self) -> HostClient<Channel> {
        HostClient::new(self.channel()).max_decoding_message_size(self.max_answer_bytes)
    }

    /// The socket; empty for one over connections that somebody else makes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks something that changes nothing, such as `ListPlugins`, and again if the supervisor is replaced meanwhile.
    ///
    /// # Errors
    /// The supervisor's, or that of the last try.
    pub async fn ask<T, F>(&self, mut question: impl FnMut(HostClient<Channel>) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        self.repeated(|| question(self.host())).await
    }

    /// The same for any service that is behind this socket.
    pub(crate) async fn repeated<T, F>(&self, mut question: impl FnMut() -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut patience = Patience::new(None);
        loop {
            let status = match question().await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            if Known::of(&status) == Known::Answered || !self.waits(&status, &mut patience).await {
                return Err(status);
            }
        }
    }

    /// Waits for the next supervisor; false if that is hopeless, or took too long.
    pub(crate) async fn waits(&self, status: &Status, patience: &mut Patience) -> bool {
        self.met.load(Ordering::Relaxed) && may_pass(status) && patience.wait().await
    }
}
