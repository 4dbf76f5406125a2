//! The operators' API of one part of the state, and the exit codes of its errors.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use talon_proto::state::operator_client::OperatorClient;
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::private_service::PrivateStateService;
use crate::exit;
use crate::failure::Failure;

/// The largest message: a value of 1 MiB or a page of keys, with overhead.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// A connection to the operators' API of one part.
pub(crate) struct Operator {
    // Dropped before the backend, because a private service waits until its connections are closed.
    pub(crate) client: OperatorClient<Channel>,
    backend: Backend,
}

/// Who serves it.
pub(super) enum Backend {
    Supervisor(PathBuf),
    /// With its scratch directory, which is deleted after the process has exited.
    Private(Box<PrivateStateService>, Option<TempDir>),
}

impl Operator {
    pub(super) fn new(channel: Channel, backend: Backend) -> Self {
        let client = OperatorClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Self { client, backend }
    }

    /// Converts a gRPC error.
    pub(crate) fn failure(&mut self, status: &Status) -> Failure {
        match &mut self.backend {
            Backend::Supervisor(path) => {
                service_failure(status).unwrap_or_else(|| connection_lost(path, status))
            }
            Backend::Private(private, _) => {
                service_failure(status).unwrap_or_else(|| private.ended(status.message()))
            }
        }
    }

    /// Whether it works on an empty scratch database, because there is no state yet.
    pub(crate) fn is_scratch(&self) -> bool {
        matches!(self.backend, Backend::Private(_, Some(_)))
    }

    /// Why only a restore is possible; empty if everything is.
    pub(crate) fn problem(&self) -> &str {
        match &self.backend {
            Backend::Supervisor(_) => "",
            Backend::Private(private, _) => private.problem(),
        }
    }
}

/// Converts an error of the state service; `None` if the connection was lost.
fn service_failure(status: &Status) -> Option<Failure> {
    let said = status.message();
    let code = match status.code() {
        // Only gRPC's own errors have a source; all others were returned by the service, or by a supervisor
        // without one.
        Code::Unavailable | Code::Unknown | Code::Cancelled if status.source().is_some() => return None,
        Code::Unknown => return None,
        Code::PermissionDenied | Code::Unauthenticated => exit::DENIED,
        Code::InvalidArgument => exit::USAGE,
        Code::NotFound | Code::ResourceExhausted | Code::AlreadyExists | Code::OutOfRange => exit::REFUSED,
        // No state is stored, or the engine does not support this.
        Code::FailedPrecondition => exit::CONFIG,
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded | Code::Cancelled => exit::HOST_FAULT,
        Code::Unimplemented => {
            let text = format!(
                "what keeps state does not know this request ({said}): it is another version; use the `talon` that it was \
                 installed with"
            );
            return Some(Failure::failed(text));
        }
        Code::Ok | Code::Internal | Code::DataLoss => exit::FAILED,
    };
    Some(Failure::new(code, said))
}

/// The connection through a supervisor was lost.
fn connection_lost(path: &Path, status: &Status) -> Failure {
    let (path, said) = (path.display(), status.message());
    Failure::new(exit::UNREACHABLE, format!("the supervisor at {path} went away ({said}); see its log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_service_says_has_an_exit_code_and_its_own_words() {
        for (code, exit) in [
            (Code::PermissionDenied, exit::DENIED),
            (Code::InvalidArgument, exit::USAGE),
            (Code::NotFound, exit::REFUSED),
            (Code::ResourceExhausted, exit::REFUSED),
            (Code::OutOfRange, exit::REFUSED),
            (Code::FailedPrecondition, exit::CONFIG),
            (Code::Unavailable, exit::HOST_FAULT),
            (Code::Aborted, exit::HOST_FAULT),
            (Code::DeadlineExceeded, exit::HOST_FAULT),
            (Code::Internal, exit::FAILED),
            (Code::DataLoss, exit::FAILED),
        ] {
            let failure = service_failure(&Status::new(code, "why")).unwrap();
            assert_eq!((failure.code(), failure.to_string().as_str()), (exit, "why"), "{code:?}");
        }
        assert_eq!(service_failure(&Status::unimplemented("why")).unwrap().code(), exit::FAILED);
    }

    #[test]
    fn a_connection_that_ended_is_no_answer() {
        let broken = || Status::from_error(Box::new(std::io::Error::from(std::io::ErrorKind::BrokenPipe)));
        assert!(service_failure(&broken()).is_none(), "{:?}", broken());
        let failure = connection_lost(Path::new("/run/talon/host.sock"), &broken());
        assert!(
            failure.code() == exit::UNREACHABLE && failure.to_string().contains("host.sock"),
            "{failure}"
        );
    }
}
