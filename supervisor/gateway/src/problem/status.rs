//! What an error of host or agent becomes: the one mapping.

use std::error::Error as _;
use std::time::Duration;

use tonic::{Code, Status};

use super::{Problem, ProblemKind};

/// When to try again what host or agent had no room for, or could not do at the moment.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<Status> for Problem {
    fn from(status: Status) -> Self {
        let kind = match status.code() {
            // Nobody answered so: the connection broke, as when a backend is started again.
            Code::Cancelled | Code::Unknown | Code::Internal if status.source().is_some() => {
                ProblemKind::Unavailable
            }
            Code::InvalidArgument | Code::OutOfRange => ProblemKind::BadRequest,
            Code::Unauthenticated => ProblemKind::Unauthenticated,
            Code::PermissionDenied => ProblemKind::Forbidden,
            Code::NotFound => ProblemKind::NotFound,
            Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => ProblemKind::Conflict,
            Code::ResourceExhausted => ProblemKind::TooManyRequests,
            Code::Unimplemented => ProblemKind::NotImplemented,
            Code::Unavailable => ProblemKind::Unavailable,
            Code::DeadlineExceeded => ProblemKind::GatewayTimeout,
            Code::Ok | Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => {
                return Self::defect(&status);
            }
        };
        match kind {
            // The connection's own error names sockets and processes, which are nobody's business outside.
            ProblemKind::Unavailable => {
                tracing::warn!(error = talon_error_chain::error_chain(&status), "a backend does not answer");
                Self::new(kind, "the agent or the supervisor does not answer now: try again")
                    .with_retry_after(RETRY_AFTER)
            }
            ProblemKind::TooManyRequests => Self::new(kind, status.message()).with_retry_after(RETRY_AFTER),
            _ => Self::new(kind, status.message()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_says_nothing_of_itself_and_a_refusal_says_why() {
        let defect = Problem::from(Status::internal("secret path /var/lib/x"));
        assert_eq!(defect.kind(), ProblemKind::Internal);
        assert!(!defect.detail().contains("secret"));
        let gone = Problem::from(Status::unavailable("connect: /run/talon/agent.sock"));
        assert!(!gone.detail().contains(".sock"), "{}", gone.detail());
        let mut lost = Status::unknown("transport error");
        lost.set_source(std::sync::Arc::new(std::io::Error::other("the stream broke")));
        assert_eq!(Problem::from(lost).kind(), ProblemKind::Unavailable);
        let refused = Problem::from(Status::not_found("no session s1: see `talon session list`"));
        assert_eq!(
            (refused.kind(), refused.detail()),
            (ProblemKind::NotFound, "no session s1: see `talon session list`")
        );
    }
}
