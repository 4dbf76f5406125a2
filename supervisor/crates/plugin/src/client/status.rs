//! What a gRPC status means: the plugin's own word, a broken connection, a limit of ours.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use talon_sanitize::{Raw, Sanitized, inert};
use tonic::{Code, Status};

use crate::execute::{ExecuteError, MAX_STATUS_MESSAGE_CHARS};

/// How the refusal of a message whose announced length is over the limit begins. It is refused before room is made for it,
/// so no more than a window's worth was received.
pub(super) const TOO_LARGE: &str = "the answer is too large";

/// How everything begins that is not gRPC at all.
pub(super) const NOT_GRPC: &str = "protocol error: ";

/// How the timer of a plugin with tonic, which follows the grpc-timeout header, words its end.
const TIMER: &str = "Timeout expired";

/// The same in bytes: no character has more than four.
const MAX_STATUS_MESSAGE_BYTES: usize = 4 * MAX_STATUS_MESSAGE_CHARS;

/// A connection that broke; its texts come from HTTP/2 and the kernel, bounded all the same.
#[derive(Debug)]
struct Broken(Sanitized);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Broken {}

/// A status's message as it may be shown: bounded and sanitized.
pub(super) fn message(status: &Status) -> Sanitized {
    bounded(status.message())
}

fn bounded(text: &str) -> Sanitized {
    let end = text.char_indices().nth(MAX_STATUS_MESSAGE_CHARS).map_or(text.len(), |(at, _)| at);
    let shown = Raw::from(&text[..end]).line_within(MAX_STATUS_MESSAGE_BYTES);
    if end < text.len() && !shown.ends_with('…') { inert!("{}…", shown) } else { shown }
}

/// A status as one phrase: the code, the message, and what lies under it.
pub(crate) fn phrase(status: &Status) -> Sanitized {
    match broken(status) {
        Some(text) => text,
        None => inert!("{}: {}", Raw::from(format!("{:?}", status.code())).line(), message(status)),
    }
}

/// The whole story of a status that was made here because a connection failed; the plugin's own have no source.
fn broken(status: &Status) -> Option<Sanitized> {
    let mut source = status.source()?;
    let mut text = status.message().to_owned();
    loop {
        let cause = source.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        match source.source() {
            Some(deeper) => source = deeper,
            None => return Some(bounded(&text)),
        }
    }
}

/// What a failed call means. `late` says whether its deadline has passed, after `waited`.
pub(super) fn into_error(status: &Status, limit: usize, late: bool, waited: Duration) -> ExecuteError {
    let (code, text) = (status.code(), status.message());
    let ours = status.source().is_none();
    if ours && code == Code::OutOfRange && text.starts_with(TOO_LARGE) {
        return ExecuteError::TooLarge { limit };
    }
    if (code == Code::Cancelled && text == TIMER)
        || (late && matches!(code, Code::Cancelled | Code::DeadlineExceeded))
    {
        return ExecuteError::TimedOut { waited };
    }
    if let Some(story) = broken(status) {
        return ExecuteError::Transport(Arc::new(Broken(story)));
    }
    if code == Code::Internal && text.starts_with(NOT_GRPC) {
        return ExecuteError::NotDecodable(message(status));
    }
    ExecuteError::Status { code, message: message(status) }
}
