//! The store's errors as those of gRPC, for people whose store it is.

use std::time::Duration;

use talon_child::{chain, cut};
use talon_listen::Throttle;
use talon_store::Error;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use crate::driver::JournalError;

/// After how many milliseconds another try makes sense, in the header that gRPC's own retries look at.
const RETRY_HEADER: &str = "grpc-retry-pushback-ms";
/// When another try makes sense if nothing better is known.
const RETRY: Duration = Duration::from_secs(1);

static FAILED: Throttle = Throttle::new();

/// What is answered instead of a result.
pub(crate) fn failed(error: &Error) -> Status {
    let text = cut(chain(error));
    match error {
        Error::Invalid { .. } => return Status::invalid_argument(text),
        Error::NoSession(id) => return no_session(&id.to_string()),
        Error::SessionExists(_) => return Status::already_exists(text),
        Error::OutOfSequence { .. } => return Status::aborted(text),
        _ => {}
    }
    if let Some(unsaid) = FAILED.word() {
        tracing::error!(error = chain(error), unsaid, "a request failed at the database");
    }
    match error {
        Error::Full(_) | Error::Quota { .. } => later(Code::ResourceExhausted, text, RETRY),
        Error::Busy(_) | Error::Closed => later(Code::Unavailable, text, RETRY),
        Error::Unavailable { retry_in, .. } => later(Code::Unavailable, text, *retry_in),
        _ => Status::internal(text),
    }
}

/// What is answered where a session could not be read or written.
pub(crate) fn unkept(error: &JournalError) -> Status {
    if let Some(unsaid) = FAILED.word() {
        tracing::error!(%error, unsaid, "a request failed at the database");
    }
    later(Code::Unavailable, cut(format!("{error}; `talon status` shows the agent's database")), RETRY)
}

/// There is no such session, or none that may be seen.
pub(super) fn no_session(id: &str) -> Status {
    let shown: String = id.chars().take(40).filter(|c| !c.is_control()).collect();
    Status::not_found(format!("there is no session {shown}: `talon session list` shows those there are"))
}

fn later(code: Code, text: String, retry_in: Duration) -> Status {
    let mut status = Status::new(code, text);
    let wait = u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX).max(1);
    status.metadata_mut().insert(RETRY_HEADER, MetadataValue::from(wait));
    status
}
