//! The connection to the supervisor.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use hyper_util::rt::TokioIo;
use rustix::fs::{CWD, Mode, OFlags, openat};
use talon_listen::Stranger;
use talon_proto::host::host_client::HostClient;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// The longest message taken from the supervisor. Its configuration bounds answers, and declarations end at 4 MiB; this
/// is a backstop against a configuration of gigabytes, past which a call gets an error.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// The longest path that a unix socket's address holds.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// A supervisor, by its socket. Cheap to clone; each request connects again if the last connection is gone.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    client: HostClient<Channel>,
    path: PathBuf,
}

impl Host {
    /// Must be called within a runtime; connects when there is something to ask.
    pub(crate) fn new(path: PathBuf) -> Self {
        let to = path.clone();
        let connector = tower::service_fn(move |_| {
            let to = to.clone();
            async move { dial(&to).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://talon.invalid").connect_with_connector_lazy(connector);
        let client = HostClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Self { client, path }
    }

    pub(crate) fn client(&self) -> HostClient<Channel> {
        self.client.clone()
    }

    /// What is said where no supervisor was ever met.
    pub(crate) fn nobody(&self) -> String {
        format!(
            "No supervisor answers at {}: have it started with `talon serve`, then try again.",
            self.path.display()
        )
    }

    /// Whether a connection could not even be made: then nothing was asked.
    pub(crate) fn is_nobody(&self, status: &Status) -> bool {
        cause(status)
            .is_some_and(|io| matches!(io.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused))
    }

    /// Whether somebody listens who is not believed to be a supervisor: then nothing was asked either.
    pub(crate) fn stranger<'s>(&self, status: &'s Status) -> Option<&'s Stranger> {
        cause(status).and_then(Stranger::of)
    }

    /// What a gRPC error means, in words that end with what to do next.
    pub(crate) fn explain(&self, status: &Status) -> String {
        let said = status.message();
        let path = self.path.display();
        if let Some(stranger) = self.stranger(status) {
            return format!("{stranger}.");
        }
        match status.code() {
            Code::OutOfRange => {
                "The arguments are more than the supervisor takes at once: put large input into a file and \
                 pass its path, or have guard.max_argument_bytes raised."
                    .to_owned()
            }
            Code::Unavailable if said.starts_with("the supervisor is draining") => said.to_owned(),
            Code::Unavailable if self.is_nobody(status) => self.nobody(),
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal => format!(
                "The supervisor at {path} went away before it had answered; the call may have had its effect. See its log, \
                 then try again."
            ),
            Code::Unimplemented => format!(
                "The supervisor at {path} does not know this request: it is another version of talon; use the talon-mcp \
                 that was installed with it."
            ),
            _ => said.to_owned(),
        }
    }
}

/// Why a connection could not be made.
fn cause(status: &Status) -> Option<&io::Error> {
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io);
        }
        source = error.source();
    }
    None
}

async fn dial(path: &Path) -> io::Result<UnixStream> {
    let stream = connect(path).await?;
    talon_listen::trusted(&stream, path)?;
    Ok(stream)
}

async fn connect(path: &Path) -> io::Result<UnixStream> {
    if path.as_os_str().as_bytes().len() <= MAX_SOCKET_PATH_BYTES {
        return UnixStream::connect(path).await;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the path of a file"));
    };
    // A longer path is reached through a descriptor of its directory.
    let directory: OwnedFd =
        openat(CWD, parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    UnixStream::connect(short).await
}
