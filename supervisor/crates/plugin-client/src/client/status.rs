//! Classifies a gRPC status: the plugin's own error, a broken connection, or one of the supervisor's limits.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use talon_error_chain::append_causes;
use talon_sanitize::{Raw, Sanitized, sanitized};
use tonic::{Code, Status};

use crate::execute_error::{ExecuteError, MAX_STATUS_MESSAGE_CHARS};

/// The start of the message when the announced length of a message is over the limit. It is refused before a
/// buffer is allocated, so at most a window's worth was received.
pub(super) const TOO_LARGE: &str = "the answer is too large";

/// The start of the message when the response is not gRPC at all.
pub(super) const NOT_GRPC: &str = "protocol error: ";

/// The message of a plugin with tonic when its timer for the grpc-timeout header expires.
const TIMER: &str = "Timeout expired";

/// The same in bytes: a character has at most four.
const MAX_STATUS_MESSAGE_BYTES: usize = 4 * MAX_STATUS_MESSAGE_CHARS;

/// A broken connection. Its texts come from HTTP/2 and the kernel, but are bounded all the same.
#[derive(Debug)]
struct ConnectionBroken(Sanitized);

impl fmt::Display for ConnectionBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for ConnectionBroken {}

/// A status's message, bounded and sanitized.
pub(super) fn message(status: &Status) -> Sanitized {
    bounded(status.message())
}

fn bounded(text: &str) -> Sanitized {
    let end = text.char_indices().nth(MAX_STATUS_MESSAGE_CHARS).map_or(text.len(), |(at, _)| at);
    let shown = Raw::from(&text[..end]).line_within(MAX_STATUS_MESSAGE_BYTES);
    if end < text.len() && !shown.ends_with('…') { sanitized!("{}…", shown) } else { shown }
}

/// A status as one phrase: the code, the message, and the underlying errors.
pub fn describe_status(status: &Status) -> Sanitized {
    match transport_failure(status) {
        Some(text) => text,
        None => sanitized!("{}: {}", Raw::from(format!("{:?}", status.code())).line(), message(status)),
    }
}

/// All causes of a status that was created here because a connection failed; a plugin's own status has no
/// source.
fn transport_failure(status: &Status) -> Option<Sanitized> {
    let source = status.source()?;
    Some(bounded(&append_causes(status.message().to_owned(), Some(source))))
}

/// Converts the status of a failed call. `late` says whether its deadline has passed, after `waited`.
pub(super) fn into_error(status: &Status, limit: usize, late: bool, waited: Duration) -> ExecuteError {
    let (code, text) = (status.code(), status.message());
    let ours = status.source().is_none();
    if ours && code == Code::OutOfRange && text.starts_with(TOO_LARGE) {
        return ExecuteError::TooLarge { limit };
    }
    if (code == Code::Cancelled && text == TIMER)
        || (late && matches!(code, Code::Cancelled | Code::DeadlineExceeded))
    {
        return ExecuteError::TimedOut { waited, sent: true };
    }
    if let Some(story) = transport_failure(status) {
        return ExecuteError::Transport(Arc::new(ConnectionBroken(story)));
    }
    if code == Code::Internal && text.starts_with(NOT_GRPC) {
        return ExecuteError::NotDecodable(message(status));
    }
    ExecuteError::Status { code, message: message(status) }
}
