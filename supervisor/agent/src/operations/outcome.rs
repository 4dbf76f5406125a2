//! What became of an operation, as the audit log has it.

use tonic::{Code, Status};

/// What became of an operation. The reasons are these alone: the text of an error may repeat what a request, a model or a provider says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationOutcome {
    /// It was carried out.
    Done,
    /// The client may not, and why.
    Denied(&'static str),
    /// Nothing of it was carried out, and why.
    Failed(&'static str),
    /// Why nobody knows how much of it was carried out.
    Unknown(&'static str),
}

impl OperationOutcome {
    /// What became of an operation that was refused so, or carried out.
    pub(crate) fn of(refusal: Option<&Status>) -> Self {
        let Some(status) = refusal else { return Self::Done };
        match status.code() {
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied("a permission is missing"),
            Code::InvalidArgument | Code::OutOfRange => Self::Failed("the request is invalid"),
            Code::NotFound => Self::Failed("there is no such thing, or it is somebody else's"),
            Code::AlreadyExists => Self::Failed("there is one already"),
            Code::FailedPrecondition => Self::Failed("its state does not allow it"),
            Code::Unimplemented => Self::Failed("it cannot be done here"),
            // The store refuses like this, also after the first of several writes.
            Code::ResourceExhausted => {
                Self::Unknown("there was no room; a part of it may have been carried out")
            }
            Code::Aborted => {
                Self::Unknown("something else changed it at once; a part of it may have been carried out")
            }
            Code::Unavailable => Self::Unknown(
                "the database or a service was not available; a part of it may have been carried out",
            ),
            _ => Self::Unknown("it failed on the way; a part of it may have been carried out"),
        }
    }

    /// The same for an operation in steps: whatever refuses one of them, those before it were carried out.
    pub(crate) fn of_steps(refusal: Option<&Status>) -> Self {
        match (Self::of(refusal), refusal.map(Status::code)) {
            // That is looked at before the first.
            (outcome, None | Some(Code::InvalidArgument)) => outcome,
            (Self::Failed(_), Some(_)) => {
                Self::Unknown("one of its steps was refused; those before it were carried out")
            }
            (outcome, Some(_)) => outcome,
        }
    }

    /// Its word in the log, and the reason.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Done => ("done", ""),
            Self::Denied(why) => ("denied", why),
            Self::Failed(why) => ("failed", why),
            Self::Unknown(why) => ("unknown", why),
        }
    }
}
