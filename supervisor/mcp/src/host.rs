//! The connection to the supervisor.

use std::path::PathBuf;

use talon_client::{CallError, RequestFate, connect_error, is_not_listening};
use talon_listen::UntrustedListenerError;
use talon_proto::host::host_client::HostClient;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// The largest message to accept from the supervisor. Its configuration limits answers, and declarations have
/// at most 4 MiB; this is a backstop against limits of gigabytes, and a larger answer fails the call.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A supervisor, by its socket. Cheap to clone; each request reconnects if the last connection was lost.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    lasting: talon_client::Client,
    path: PathBuf,
}

impl Host {
    /// Must be called within a runtime; connects on the first request.
    pub(crate) fn new(path: PathBuf) -> Self {
        let lasting = talon_client::Client::lazy(path.clone()).with_max_answer_bytes(MAX_MESSAGE_BYTES);
        Self { lasting, path }
    }

    /// A client that never retries, for queries.
    pub(crate) fn client(&self) -> HostClient<Channel> {
        self.lasting.host()
    }

    /// A client that survives a restart of the supervisor, for calls.
    pub(crate) fn reconnecting(&self) -> &talon_client::Client {
        &self.lasting
    }

    /// The message if no supervisor was ever reached.
    pub(crate) fn unreachable_message(&self) -> String {
        format!(
            "No supervisor answers at {}: have it started with `talon serve`, then try again.",
            self.path.display()
        )
    }

    /// Whether no connection could be made, so that the request was never sent.
    pub(crate) fn is_unreachable(&self, status: &Status) -> bool {
        connect_error(status).is_some_and(is_not_listening)
    }

    /// Whether the listening process is not trusted to be a supervisor; the request was not sent then.
    pub(crate) fn unknown_peer<'s>(&self, status: &'s Status) -> Option<&'s UntrustedListenerError> {
        connect_error(status).and_then(UntrustedListenerError::of)
    }

    /// Explains the error of a call without an answer, ending with what to do next.
    pub(crate) fn explain_call(&self, error: &CallError) -> String {
        let why = self.explain(&error.status);
        match error.fate {
            RequestFate::NotStarted
                if connect_error(&error.status).is_some_and(|why| !is_not_listening(why)) =>
            {
                why
            }
            RequestFate::NotStarted => format!("{why} The call was not begun."),
            RequestFate::Answered | RequestFate::Unknown => why,
        }
    }

    /// Explains a gRPC error, ending with what to do next.
    pub(crate) fn explain(&self, status: &Status) -> String {
        let said = status.message();
        let path = self.path.display();
        if let Some(stranger) = self.unknown_peer(status) {
            return format!("{stranger}.");
        }
        match status.code() {
            Code::OutOfRange => {
                "The arguments are more than the supervisor takes at once: put large input into a file and \
                 pass its path, or have guard.max_argument_bytes raised."
                    .to_owned()
            }
            Code::Unavailable if said.starts_with(talon_listen::DRAINING) => said.to_owned(),
            Code::Unavailable if self.is_unreachable(status) => self.unreachable_message(),
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
