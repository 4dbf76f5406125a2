//! Why a desk does not do something, for people.

use talon_store::Error;

/// Of a denial's reason; the wire says so, too.
pub(super) const MAX_REASON_BYTES: usize = 500;

/// The desk could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("parked calls cannot be read: {0}")]
pub struct OpenError(#[from] Error);

/// Why nothing was decided. Each is a sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// There is none of this id.
    #[error("there is no approval {id:?}; `talon approval list` shows those that wait")]
    Unknown {
        /// The beginning of what was asked for.
        id: String,
    },
    /// It was decided before.
    #[error("it was {state} already, by {by}; what is decided stays decided")]
    Decided {
        /// What was decided.
        state: &'static str,
        /// By whom.
        by: String,
    },
    /// It expired.
    #[error("it has expired, and the model was told that nobody decided; ask it to make the call again")]
    Expired,
    /// Its turn is over.
    #[error("its turn was ended, and the call will not be made; ask for it again")]
    Cancelled,
    /// Something else was seen than what is parked.
    #[error(
        "the digest is not this call's, so nothing was decided; look at it again with `talon approval list`"
    )]
    OtherDigest,
    /// The reason is too long.
    #[error("a reason has at most {MAX_REASON_BYTES} bytes, not {bytes}")]
    LongReason {
        /// Its size.
        bytes: usize,
    },
    /// It could not be made durable.
    #[error("it could not be stored, so nothing was decided: {0}")]
    Store(#[from] Error),
}
