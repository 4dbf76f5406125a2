//! Maps errors of the store to gRPC statuses, for the people who own the store.

use std::time::Duration;

use talon_agent_settings::milliseconds;
use talon_child::truncate;
use talon_error_chain::error_chain;
use talon_listen::LogThrottle;
use talon_store::Error;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use crate::journal::JournalError;

/// The header with the milliseconds until a retry makes sense, which gRPC's own retries read.
const RETRY_HEADER: &str = "grpc-retry-pushback-ms";
/// When to retry if nothing better is known.
const RETRY: Duration = Duration::from_secs(1);

static FAILED: LogThrottle = LogThrottle::new();

/// The status for an error of the store.
pub(crate) fn store_error_status(error: &Error) -> Status {
    let text = error_chain(error);
    match error {
        Error::Invalid { .. } => return Status::invalid_argument(text),
        Error::NoSession(id) => return no_session(&id.to_string()),
        Error::SessionExists(_) | Error::KeyExists { .. } => return Status::already_exists(text),
        Error::OutOfSequence { .. } => return Status::aborted(text),
        _ => {}
    }
    if let Some(unsaid) = FAILED.permit() {
        tracing::error!(error = error_chain(error), unsaid, "a request failed at the database");
    }
    match error {
        Error::Full(_) | Error::Quota { .. } => retry_later_status(Code::ResourceExhausted, text, RETRY),
        Error::Busy(_) | Error::Closed => retry_later_status(Code::Unavailable, text, RETRY),
        Error::Unavailable { retry_in, .. } => retry_later_status(Code::Unavailable, text, *retry_in),
        _ => Status::internal(text),
    }
}

/// The status for a session that could not be read or written.
pub(crate) fn journal_error_status(error: &JournalError) -> Status {
    if let Some(unsaid) = FAILED.permit() {
        tracing::error!(%error, unsaid, "a request failed at the database");
    }
    retry_later_status(
        Code::Unavailable,
        truncate(format!("{error}; `talon status` shows the agent's database")),
        RETRY,
    )
}

/// The session does not exist, or the client may not see it.
pub(crate) fn no_session(id: &str) -> Status {
    let shown: String = id.chars().take(40).filter(|c| !c.is_control()).collect();
    Status::not_found(format!("there is no session {shown}: `talon session list` shows those there are"))
}

fn retry_later_status(code: Code, text: String, retry_in: Duration) -> Status {
    let mut status = Status::new(code, text);
    let wait = milliseconds(retry_in).max(1);
    status.metadata_mut().insert(RETRY_HEADER, MetadataValue::from(wait));
    status
}
