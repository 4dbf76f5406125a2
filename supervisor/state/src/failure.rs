//! Converts the store's errors to gRPC statuses.
//!
//! A plugin gets the errors that it can do something about. A failure of the database itself is for the
//! operator and the log: a plugin gets a generic text.

use std::time::Duration;

pub(crate) use talon_child::truncate;
use talon_error_chain::error_chain;
use talon_listen::LogThrottle;
use talon_proto::state::QuotaExceeded;
use talon_store::{Error, Resource};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// The header that gRPC clients read for retries: after how many milliseconds to try again.
pub(crate) const RETRY_HEADER: &str = "grpc-retry-pushback-ms";
/// When to try again if nothing better is known.
const RETRY: Duration = Duration::from_secs(1);

/// Who made the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A plugin, which must not learn anything about the machine.
    Plugin,
    /// The operator of the machine.
    Operator,
}

/// The status for an error.
pub(crate) fn status(error: &Error, asker: Requester) -> Status {
    match error {
        Error::Invalid { .. } => Status::invalid_argument(truncate(error.to_string())),
        Error::Quota { resource, used, limit, wanted, .. } => {
            let details =
                QuotaExceeded { resource: resource.to_string(), used: *used, limit: *limit, wanted: *wanted };
            let what = match resource {
                Resource::Bytes => "bytes of keys and values",
                Resource::Keys => "keys",
            };
            let text = format!(
                "the quota is used up: {used} of {limit} {what}, and {wanted} are wanted; delete something first, or \
                 have the operator raise it"
            );
            details.into_status(text)
        }
        Error::BadCopy { why, .. } => Status::invalid_argument(truncate(format!(
            "the copy cannot be restored: {why}. Nothing was changed"
        ))),
        Error::Unsupported(instead) => Status::failed_precondition(*instead),
        Error::NoSession(_) => Status::not_found(error.to_string()),
        Error::SessionExists(_) => Status::already_exists(error.to_string()),
        Error::OutOfSequence { .. } => Status::aborted(error.to_string()),
        Error::Full(_) => {
            log(error);
            let text = "there is no room for the state of plugins: try again once the operator has made some";
            retryable(Code::ResourceExhausted, message_for(error, asker, text), RETRY)
        }
        Error::Busy(_) => {
            log(error);
            retryable(
                Code::Unavailable,
                message_for(error, asker, "the database is busy: try again in a moment"),
                RETRY,
            )
        }
        Error::Unavailable { retry_in, .. } => {
            let text =
                format!("the database cannot be reached: try again in {} ms", retry_in.as_millis().max(1));
            retryable(Code::Unavailable, message_for(error, asker, &text), *retry_in)
        }
        Error::Closed => {
            retryable(Code::Unavailable, "the state service is ending: try again".to_owned(), RETRY)
        }
        _ => {
            log(error);
            Status::internal(message_for(error, asker, "the state service failed; its log says why"))
        }
    }
}

fn message_for(error: &Error, asker: Requester, plugin: &str) -> String {
    match asker {
        Requester::Plugin => plugin.to_owned(),
        Requester::Operator => error_chain(error),
    }
}

fn retryable(code: Code, text: String, retry_in: Duration) -> Status {
    let mut status = Status::new(code, text);
    let wait = u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX).max(1);
    status.metadata_mut().insert(RETRY_HEADER, MetadataValue::from(wait));
    status
}

/// Logs errors that every request may meet, at most once a second.
fn log(error: &Error) {
    static FAILED: LogThrottle = LogThrottle::new();
    if let Some(unsaid) = FAILED.permit() {
        tracing::error!(error = error_chain(error), unsaid, "a request failed");
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
