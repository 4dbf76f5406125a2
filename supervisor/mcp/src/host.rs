//! The connection to the supervisor.

use std::path::PathBuf;

use talon_client::{CallError, Known, is_nobody, reason};
use talon_listen::Stranger;
use talon_proto::host::host_client::HostClient;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// The longest message taken from the supervisor. Its configuration bounds answers, and declarations end at 4 MiB; this
/// is a backstop against a configuration of gigabytes, past which a call gets an error.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A supervisor, by its socket. Cheap to clone; each request connects again if the last connection is gone.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    lasting: talon_client::Client,
    path: PathBuf,
}

impl Host {
    /// Must be called within a runtime; connects when there is something to ask.
    pub(crate) fn new(path: PathBuf) -> Self {
        let lasting = talon_client::Client::lazy(path.clone()).with_max_answer_bytes(MAX_MESSAGE_BYTES);
        Self { lasting, path }
    }

    /// For questions, of which none is repeated.
    pub(crate) fn client(&self) -> HostClient<Channel> {
        self.lasting.host()
    }

    /// For calls, which come through a restart of the supervisor.
    pub(crate) fn lasting(&self) -> &talon_client::Client {
        &self.lasting
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
        reason(status).is_some_and(is_nobody)
    }

    /// Whether somebody listens who is not believed to be a supervisor: then nothing was asked either.
    pub(crate) fn stranger<'s>(&self, status: &'s Status) -> Option<&'s Stranger> {
        reason(status).and_then(Stranger::of)
    }

    /// What it means that a call was not answered, in words that end with what to do next.
    pub(crate) fn explain_call(&self, error: &CallError) -> String {
        let why = self.explain(&error.status);
        match error.known {
            Known::NotBegun if reason(&error.status).is_some_and(|why| !is_nobody(why)) => why,
            Known::NotBegun => format!("{why} The call was not begun."),
            Known::Answered | Known::Unknown => why,
        }
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
            Code::Unavailable if said.starts_with(talon_listen::DRAINING) => said.to_owned(),
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
