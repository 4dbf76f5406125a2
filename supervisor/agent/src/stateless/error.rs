//! Why a conversation or a client's tools are refused.

use talon_proto::agent::CompletionRefusal;
use tonic::{Code, Status};

/// Why a request is refused. The texts are for the client and its author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConversationError {
    /// A field is wrong.
    #[error("{field}: {why}")]
    Invalid {
        /// Its path.
        field: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// What the server's own tools did in the turn is kept no more.
    #[error(
        "the turn of this call has expired: what tools of the server did in it is kept for an hour, and not when the agent is started \
         again. Ask again from the last message of the user"
    )]
    Expired,
    /// Hooks see answers before people do, and calls of a client's tools would pass them by.
    #[error(
        "response hooks see whole answers here, and calls of a client's tools would pass them by: ask without tools"
    )]
    Hooked,
}

impl ConversationError {
    pub(super) fn invalid(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), why: why.into() }
    }
}

impl From<ConversationError> for Status {
    fn from(error: ConversationError) -> Self {
        let text = talon_child::truncate(error.to_string());
        let (code, reason, field) = match error {
            ConversationError::Invalid { field, .. } => (Code::InvalidArgument, "invalid", field),
            ConversationError::Expired => (Code::FailedPrecondition, "turn_expired", String::new()),
            ConversationError::Hooked => (Code::FailedPrecondition, "hooked", "tools".to_owned()),
        };
        CompletionRefusal { reason: reason.to_owned(), field }.into_status(code, text)
    }
}
