//! The connection to a supervisor, and the exit codes of its gRPC errors.

use std::io;
use std::path::{Path, PathBuf};

use talon_client::{CallError, RequestFate, dial, is_not_listening};
use talon_error_chain::error_chain;
use talon_listen::UntrustedListenerError;
use talon_proto::host::host_client::HostClient;
use tokio::net::UnixStream;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;

/// A connected client with the path of its socket.
pub(crate) struct Client {
    pub(crate) host: HostClient<Channel>,
    /// A client that reconnects after a restart of the supervisor.
    pub(crate) reconnecting: talon_client::Client,
}

impl Client {
    /// Connects; the error says how to get a supervisor.
    pub(crate) async fn connect(socket: &HostSocket<'_>) -> Result<Self, Failure> {
        Self::connect_to(socket.path()?).await
    }

    /// Connects if there is a supervisor. One that was named with `--socket` or in the environment is
    /// required.
    pub(crate) async fn connect_if_there(socket: &HostSocket<'_>) -> Result<Option<Self>, Failure> {
        let path = socket.path()?;
        match dial(&path).await {
            Ok(first) => Self::from_stream(first, path).await.map(Some),
            Err(error) if is_not_listening(&error) && !socket.is_named() => Ok(None),
            Err(error) => Err(unreachable(&path, &error)),
        }
    }

    /// Connects; `None` if there is no supervisor, also where the user named the socket.
    pub(crate) async fn connect_if_listening(socket: &HostSocket<'_>) -> Result<Option<Self>, Failure> {
        let path = socket.path()?;
        match dial(&path).await {
            Ok(first) => Self::from_stream(first, path).await.map(Some),
            Err(error) if is_not_listening(&error) => Ok(None),
            Err(error) => Err(unreachable(&path, &error)),
        }
    }

    pub(crate) async fn connect_to(path: PathBuf) -> Result<Self, Failure> {
        // Connect here, where the error is still an io::Error, and pass the stream to the channel.
        let first = dial(&path).await.map_err(|error| unreachable(&path, &error))?;
        Self::from_stream(first, path).await
    }

    async fn from_stream(first: UnixStream, path: PathBuf) -> Result<Self, Failure> {
        let lasting = talon_client::Client::from_stream(first, path.clone()).await.map_err(|error| {
            Failure::new(
                exit::UNREACHABLE,
                format!(
                    "{} closed the connection at once ({}): it may have too many clients; try again, or see the \
                     supervisor's log",
                    path.display(),
                    error_chain(&error)
                ),
            )
        })?;
        Ok(Self { host: lasting.host(), reconnecting: lasting })
    }

    /// The same connection, for other gRPC services.
    pub(crate) fn channel(&self) -> Channel {
        self.reconnecting.channel()
    }

    /// The path of the socket.
    pub(crate) fn path(&self) -> &Path {
        self.reconnecting.path()
    }

    /// Converts the error of a call without an answer, with what is known about its fate.
    pub(crate) fn call_failure(&self, error: &CallError) -> Failure {
        let failure = self.failure(&error.status);
        match error.fate {
            RequestFate::Answered => failure,
            RequestFate::NotStarted => {
                Failure::new(failure.code(), format!("{failure}; the call was not begun"))
            }
            RequestFate::Unknown => Failure::new(
                failure.code(),
                format!(
                    "{failure}; whether the call took effect is not known, and its action is not declared read_only: look \
                     before you repeat it"
                ),
            ),
        }
    }

    /// Converts a gRPC error of this supervisor.
    pub(crate) fn failure(&self, status: &Status) -> Failure {
        from_status(self.path(), status)
    }
}

/// Converts a connection error.
pub(crate) fn unreachable(path: &Path, error: &io::Error) -> Failure {
    if let Some(stranger) = UntrustedListenerError::of(error) {
        return Failure::new(exit::DENIED, stranger.to_string());
    }
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            exit::UNREACHABLE,
            format!(
                "no supervisor at {path}: start one with `talon serve`, or name its socket with --socket"
            ),
        ),
        io::ErrorKind::ConnectionRefused => Failure::new(
            exit::UNREACHABLE,
            format!(
                "no process listens on {path} any more: its supervisor has exited; start one with `talon serve`"
            ),
        ),
        io::ErrorKind::PermissionDenied => Failure::new(
            exit::DENIED,
            format!(
                "this user may not connect to {path}: join the group that `host.group` names, or ask root"
            ),
        ),
        _ => Failure::new(
            exit::UNREACHABLE,
            format!("cannot connect to {path}: {error}; see whether `talon serve` runs there"),
        ),
    }
}

/// Converts a gRPC error of the supervisor at this socket.
pub(crate) fn from_status(path: &Path, status: &Status) -> Failure {
    let said = status.message();
    match status.code() {
        Code::PermissionDenied => Failure::new(exit::DENIED, said),
        Code::InvalidArgument => Failure::usage(said),
        // gRPC's code for a message above the receiver's limit.
        Code::OutOfRange => Failure::new(
            exit::REFUSED,
            format!(
                "the arguments are more than the supervisor takes at once ({said}): put large input into a file and \
                 pass its path, or raise guard.max_argument_bytes"
            ),
        ),
        Code::NotFound | Code::ResourceExhausted | Code::AlreadyExists => Failure::new(exit::REFUSED, said),
        Code::FailedPrecondition | Code::Aborted | Code::DeadlineExceeded => {
            Failure::new(exit::HOST_FAULT, said)
        }
        Code::Unavailable if said.starts_with(talon_listen::DRAINING) => Failure::new(exit::HOST_FAULT, said),
        Code::Unimplemented => Failure::failed(format!(
            "the supervisor at {} does not know this request: it is another version of talon; use the `talon` it \
             was started with",
            path.display()
        )),
        Code::Unavailable | Code::Cancelled | Code::Unknown => Failure::new(
            exit::UNREACHABLE,
            format!("the supervisor at {} went away ({said}); see its log", path.display()),
        ),
        code => Failure::failed(format!("the supervisor failed ({code:?}: {said}); see its log")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-4
    #[test]
    fn every_grpc_code_has_an_exit_code() {
        let path = Path::new("/run/talon/host.sock");
        for (code, exit) in [
            (Code::PermissionDenied, exit::DENIED),
            (Code::InvalidArgument, exit::USAGE),
            (Code::NotFound, exit::REFUSED),
            (Code::OutOfRange, exit::REFUSED),
            (Code::FailedPrecondition, exit::HOST_FAULT),
            (Code::Unavailable, exit::UNREACHABLE),
            (Code::Internal, exit::FAILED),
        ] {
            assert_eq!(from_status(path, &Status::new(code, "why")).code(), exit, "{code:?}");
        }
        let draining = Status::unavailable(format!("{}: retry", talon_listen::DRAINING));
        assert_eq!(from_status(path, &draining).code(), exit::HOST_FAULT);
    }

    #[tokio::test]
    async fn a_missing_supervisor_says_how_to_start_one() {
        let dir = tempfile::tempdir().unwrap();
        let failure = Client::connect_to(dir.path().join("host.sock")).await.err().unwrap();
        assert_eq!(failure.code(), exit::UNREACHABLE);
        assert!(failure.to_string().contains("talon serve"), "{failure}");
    }
}
