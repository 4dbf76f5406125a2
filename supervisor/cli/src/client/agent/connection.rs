//! The connection to the agent, and the exit codes of its errors.

use std::io;
use std::path::Path;

use talon_client::{Agent, RequestFate, TurnError, dial, is_not_listening};
use talon_listen::UntrustedListenerError;
use talon_proto::agent::agent_client::AgentClient;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::client::connection;
use crate::exit;
use crate::failure::Failure;
use crate::host_socket::HostSocket;

/// A connection to the agent of the addressed supervisor.
pub(super) struct AgentConnection {
    pub(super) agent: Agent,
}

impl AgentConnection {
    /// Connects; the error says how to get an agent.
    pub(super) async fn connect(socket: &HostSocket<'_>) -> Result<Self, Failure> {
        let host = socket.path()?;
        let path = Agent::socket_beside(&host);
        let first = match dial(&path).await {
            Ok(first) => first,
            Err(error) => return Err(connect_failure(&host, &path, &error).await),
        };
        let agent = Agent::from_stream(first, path.clone()).await.map_err(|error| {
            Failure::new(
                exit::UNREACHABLE,
                format!(
                    "{} closed the connection at once ({}): the agent may be starting, or have too many clients; try \
                     again, and see `talon status`",
                    path.display(),
                    talon_error_chain::error_chain(&error)
                ),
            )
        })?;
        Ok(Self { agent })
    }

    /// Sends a read-only request; repeats it if the agent restarts in the meantime.
    pub(super) async fn query<T, F>(
        &self,
        question: impl FnMut(AgentClient<Channel>) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let answer = self.agent.ask(question).await;
        answer.map(Response::into_inner).map_err(|status| self.failure(&status))
    }

    /// Sends a request that may change something; never repeats it.
    pub(super) async fn send_once<T>(
        &self,
        question: impl AsyncFnOnce(AgentClient<Channel>) -> Result<Response<T>, Status>,
    ) -> Result<T, Failure> {
        let answer = question(self.agent.grpc()).await;
        answer.map(Response::into_inner).map_err(|status| self.failure(&status))
    }

    /// Converts a gRPC error of this agent.
    pub(super) fn failure(&self, status: &Status) -> Failure {
        from_status(self.agent.path(), status)
    }

    /// Converts the error of a turn that could not be followed.
    pub(super) fn turn_failure(&self, error: &TurnError) -> Failure {
        match error {
            TurnError::Refused(status) => self.failure(status),
            TurnError::Unknown(_) | TurnError::Missed { .. } => {
                Failure::new(exit::UNREACHABLE, error.to_string())
            }
            TurnError::Lost { session_id, status } => {
                let failure = self.failure(status);
                match session_id {
                    Some(id) => Failure::new(
                        failure.code(),
                        format!("{failure}; then go on with `talon chat --session {id}`"),
                    ),
                    None => failure,
                }
            }
        }
    }
}

/// Why there is no connection: no supervisor, or a supervisor without an agent.
async fn connect_failure(host: &Path, path: &Path, error: &io::Error) -> Failure {
    if let Some(stranger) = UntrustedListenerError::of(error) {
        return Failure::new(exit::DENIED, stranger.to_string());
    }
    if is_not_listening(error) {
        return match dial(host).await {
            Ok(_) => Failure::new(
                exit::UNREACHABLE,
                "the agent is not running: list a provider and its models under `models` in the configuration, without \
                 `agent.enabled: false`, and restart the supervisor; if that is done, `talon status` says what keeps it from running",
            ),
            Err(error) => connection::unreachable(host, &error),
        };
    }
    connection::unreachable(path, error)
}

fn from_status(path: &Path, status: &Status) -> Failure {
    let said = status.message();
    if RequestFate::from_status(status) != RequestFate::Answered {
        return Failure::new(
            exit::UNREACHABLE,
            format!(
                "the agent at {} went away ({said}): it is restarted automatically; try again, and see `talon status`",
                path.display()
            ),
        );
    }
    match status.code() {
        Code::PermissionDenied | Code::Unauthenticated => Failure::new(exit::DENIED, said),
        Code::InvalidArgument => Failure::usage(said),
        Code::NotFound
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::OutOfRange
        | Code::FailedPrecondition
        | Code::Aborted => Failure::new(exit::REFUSED, said),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Failure::new(exit::HOST_FAULT, said),
        Code::Unimplemented => Failure::failed(format!(
            "the agent at {} does not know this request: it is another version of talon; use the `talon` that its \
             supervisor was started with",
            path.display()
        )),
        code => Failure::failed(format!(
            "the agent failed ({code:?}: {said}); see the supervisor's log, with TALON_LOG=agent=debug"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-40
    #[test]
    fn every_grpc_code_has_an_exit_code() {
        let path = Path::new("/run/talon/agent.sock");
        for (code, exit) in [
            (Code::PermissionDenied, exit::DENIED),
            (Code::InvalidArgument, exit::USAGE),
            (Code::NotFound, exit::REFUSED),
            (Code::FailedPrecondition, exit::REFUSED),
            (Code::Unavailable, exit::HOST_FAULT),
            (Code::Unimplemented, exit::FAILED),
            (Code::Internal, exit::FAILED),
        ] {
            assert_eq!(from_status(path, &Status::new(code, "why")).code(), exit, "{code:?}");
        }
        let broken = Status::from_error(Box::new(io::Error::from(io::ErrorKind::BrokenPipe)));
        assert_eq!(from_status(path, &broken).code(), exit::UNREACHABLE);
    }
}
