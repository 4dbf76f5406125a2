//! A client of a supervisor, through its socket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use talon_proto::host::host_client::HostClient;
use talon_wire::BusyPoll;
use tokio::net::UnixStream;
use tonic::Status;
use tonic::transport::Channel;

use crate::calls_in_flight::CallsInFlight;
use crate::dial::{self, Connect};
use crate::request_fate::{RequestFate, is_transient};
use crate::retry_window::RetryWindow;

/// The default limit of an answer's size. The supervisor's configuration limits answers; this only protects
/// from a configuration of gigabytes.
pub const MAX_ANSWER_BYTES: usize = 256 << 20;

/// How long to busy-poll for an answer: a small call through a supervisor takes 60 to 300 µs, more than one
/// to a plugin.
const BUSY_POLL_LIMIT: Duration = Duration::from_micros(500);

/// A client of a supervisor. Cheap to clone; clones share one connection, which is made again when it ends.
#[derive(Debug, Clone)]
pub struct Client {
    channel: Channel,
    path: PathBuf,
    max_answer_bytes: usize,
    /// Whether there ever was a connection: only then is it worth waiting for the next supervisor.
    ever_connected: Arc<AtomicBool>,
    /// The calls that are under way.
    pub(crate) calls: CallsInFlight,
    /// Busy polling for the answers to calls.
    pub(crate) busy_poll: Arc<BusyPoll>,
}

impl Client {
    /// Connects at the first request. Must be called within a tokio runtime.
    #[must_use]
    pub fn lazy(path: PathBuf) -> Self {
        let met = Arc::new(AtomicBool::new(false));
        let calls = CallsInFlight::default();
        let channel = dial::lazy(path.clone(), Arc::clone(&met), calls.busy.clone());
        Self::from_channel(channel, path, met, calls)
    }

    /// A client with a custom connector, as a child process gets its connections from its supervisor. Since a
    /// supervisor started that process, the client waits for one from the beginning. Must be called within a
    /// tokio runtime.
    #[must_use]
    pub fn with_connector(connect: Connect) -> Self {
        let met = Arc::new(AtomicBool::new(true));
        let calls = CallsInFlight::default();
        let channel = dial::with_connector(connect, Arc::clone(&met), calls.busy.clone());
        Self::from_channel(channel, PathBuf::new(), met, calls)
    }

    /// A client on a connection from [`dial::dial`].
    ///
    /// # Errors
    /// When the other end closes it at once.
    pub async fn from_stream(first: UnixStream, path: PathBuf) -> Result<Self, tonic::transport::Error> {
        let calls = CallsInFlight::default();
        let channel = dial::channel_of_calls(first, path.clone(), calls.busy.clone()).await?;
        let met = Arc::new(AtomicBool::new(true));
        Ok(Self::from_channel(channel, path, met, calls))
    }

    fn from_channel(
        channel: Channel,
        path: PathBuf,
        ever_connected: Arc<AtomicBool>,
        calls: CallsInFlight,
    ) -> Self {
        Self {
            channel,
            path,
            max_answer_bytes: MAX_ANSWER_BYTES,
            ever_connected,
            calls,
            busy_poll: Arc::new(BusyPoll::for_up_to(BUSY_POLL_LIMIT)),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`dial::dial`], without waiting.
    pub async fn connect(path: PathBuf) -> io::Result<Self> {
        let first = dial::dial(&path).await?;
        Self::from_stream(first, path).await.map_err(io::Error::other)
    }

    /// Sets the limit of an answer's size.
    #[must_use]
    pub fn with_max_answer_bytes(self, max_answer_bytes: usize) -> Self {
        Self { max_answer_bytes, ..self }
    }

    /// The channel, for services other than the host's.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The generated client, without retries.
    #[must_use]
    pub fn host(&self) -> HostClient<Channel> {
        HostClient::new(self.channel()).max_decoding_message_size(self.max_answer_bytes)
    }

    /// The path of the socket; empty with a custom connector.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends a request without side effects, such as `ListPlugins`, and repeats it if the supervisor is
    /// replaced meanwhile.
    ///
    /// # Errors
    /// The supervisor's, or that of the last attempt.
    pub async fn ask<T, F>(&self, mut question: impl FnMut(HostClient<Channel>) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        self.repeated(|| question(self.host())).await
    }

    /// The same for any service on this socket.
    pub(crate) async fn repeated<T, F>(&self, mut question: impl FnMut() -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut patience = RetryWindow::new(None);
        loop {
            let status = match question().await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            if RequestFate::from_status(&status) == RequestFate::Answered
                || !self.wait_for_supervisor(&status, &mut patience).await
            {
                return Err(status);
            }
        }
    }

    /// Waits for the next supervisor; false if that cannot help, or took too long.
    pub(crate) async fn wait_for_supervisor(&self, status: &Status, patience: &mut RetryWindow) -> bool {
        self.ever_connected.load(Ordering::Relaxed) && is_transient(status) && patience.wait().await
    }
}
