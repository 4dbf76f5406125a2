//! The connection to the supervisor.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use talon_client::Client;
use talon_listen::UntrustedListenerError;
use talon_proto::host::host_client::HostClient;
use talon_sanitize::{Raw, Sanitized};
use tonic::transport::Channel;
use tonic::{Code, Status};

/// How long a supervisor may take to answer before it counts as gone; it answers these requests from memory.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A supervisor, by its socket. Cheap to clone; each request reconnects if the last connection was lost.
#[derive(Debug, Clone)]
pub(crate) struct Host(Client);

impl Host {
    /// Must be called within a runtime; connects on the first request.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(Client::lazy(path))
    }

    /// A client that never retries: a lost supervisor has to be visible at once.
    pub(crate) fn client(&self) -> HostClient<Channel> {
        self.0.host()
    }

    /// Explains an error in one line that ends with what to do.
    pub(crate) fn explain(&self, status: &Status) -> Sanitized {
        let path = self.0.path().display();
        let text = match (status.code(), talon_client::connect_error(status)) {
            (_, Some(error)) if UntrustedListenerError::of(error).is_some() => error.to_string(),
            (_, Some(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                format!(
                    "this user may not connect to {path}: join the group that `host.group` names, or ask root"
                )
            }
            (_, Some(_)) => format!("no supervisor answers at {path}: start one with `talon serve`"),
            (Code::PermissionDenied | Code::ResourceExhausted, _) => status.message().to_owned(),
            (Code::Unimplemented, _) => {
                format!(
                    "the supervisor at {path} is another version of talon: use the talon-top installed with it"
                )
            }
            (Code::DeadlineExceeded, _) => {
                format!("the supervisor at {path} does not answer: see its log")
            }
            _ => format!("the supervisor at {path} went away ({}): see its log", status.message()),
        };
        Raw::from(text).line()
    }
}

/// Adds the timeout to a request.
pub(crate) async fn with_timeout<T>(answer: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let slow = || Err(Status::deadline_exceeded("no answer"));
    tokio::time::timeout(ANSWER_TIMEOUT, answer).await.unwrap_or_else(|_| slow())
}
