//! What an error says about its request: whether it may have taken effect.

use std::io;

use talon_listen::DRAINING;
use tonic::{Code, Status};

use crate::dial::{NotConnectedError, causes};

/// What happened to a failed request, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestFate {
    /// It was not started, so it can always be repeated.
    NotStarted,
    /// The connection broke meanwhile: it may have taken effect, or not.
    Unknown,
    /// The supervisor answered with an error, so there is no reason to repeat it.
    Answered,
}

impl RequestFate {
    /// Derives it from the error.
    #[must_use]
    pub fn from_status(status: &Status) -> Self {
        if status.code() == Code::Unavailable && status.message().starts_with(DRAINING) {
            return Self::NotStarted;
        }
        let mut broken = false;
        for cause in causes(status) {
            if cause.is::<NotConnectedError>() || is_unsent(cause) || is_refused_unread(cause) {
                return Self::NotStarted;
            }
            // A status that came over the wire has no cause.
            broken = true;
        }
        if broken { Self::Unknown } else { Self::Answered }
    }
}

/// Whether it was still queued in this process when the connection ended.
fn is_unsent(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
}

/// Whether the other end reported that it did not process the request: by refusing the stream, or, at a
/// graceful shutdown, by naming an earlier stream as the last one.
fn is_refused_unread(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref::<h2::Error>().is_some_and(|error| {
        let said = error.is_remote();
        let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        let left_out = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        said && (refused || left_out)
    })
}

/// Whether a retry may help: no process listens, as between two supervisors; too many clients wait; or the
/// supervisor is stopping.
pub(crate) fn is_transient(status: &Status) -> bool {
    let kind = causes(status)
        .find_map(|cause| cause.downcast_ref::<NotConnectedError>())
        .map(|NotConnectedError(why)| why.kind());
    // A full listen queue makes connecting fail at once.
    kind.is_none_or(|kind| {
        matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_supervisor_says_is_an_answer_unless_it_says_that_it_is_ending() {
        let draining = Status::unavailable(format!("{DRAINING} and takes no new calls"));
        assert_eq!(RequestFate::from_status(&draining), RequestFate::NotStarted);
        for answer in
            [Status::unavailable("the state service does not answer"), Status::internal("internal error")]
        {
            assert_eq!(RequestFate::from_status(&answer), RequestFate::Answered, "{answer}");
        }
    }

    // Promises: CLI-35
    #[test]
    fn what_was_not_connected_was_not_begun_and_passes_only_if_somebody_may_come() {
        for (kind, passes) in [
            (io::ErrorKind::NotFound, true),
            (io::ErrorKind::ConnectionRefused, true),
            (io::ErrorKind::WouldBlock, true),
            (io::ErrorKind::PermissionDenied, false),
        ] {
            let status = Status::from_error(Box::new(NotConnectedError(kind.into())));
            assert_eq!(
                (RequestFate::from_status(&status), is_transient(&status)),
                (RequestFate::NotStarted, passes),
                "{kind}"
            );
        }
    }

    // Promises: CLI-35
    #[test]
    fn a_broken_connection_leaves_it_open() {
        let broken = Status::from_error(Box::new(io::Error::from(io::ErrorKind::BrokenPipe)));
        assert_eq!(RequestFate::from_status(&broken), RequestFate::Unknown);
        let reset = Status::from_error(Box::new(h2::Error::from(h2::Reason::REFUSED_STREAM)));
        assert_eq!(RequestFate::from_status(&reset), RequestFate::Unknown, "not said by the other end");
    }
}
