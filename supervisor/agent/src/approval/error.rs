//! Errors of the approval queue, as sentences for people.

use talon_arguments::form::FormAnswerError;
use talon_store::Error;

use super::rules::RuleError;

/// The longest reason of a denial. The protocol documents it, too.
pub(super) const MAX_REASON_BYTES: usize = 500;

/// The longest answer to a question. 16 KiB: a longer text is a message.
pub(super) const MAX_ANSWER_BYTES: usize = 16 << 10;

/// The queue could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("parked calls cannot be read: {0}")]
pub struct OpenError(#[from] Error);

/// Why a decision was rejected. Each text is a sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// No call has this id.
    #[error("there is no approval {id:?}; `talon approval list` shows those that wait")]
    Unknown {
        /// The beginning of the requested id.
        id: String,
    },
    /// It was already decided.
    #[error("it was {state} already, by {by}; what is decided stays decided")]
    Decided {
        /// What was decided.
        state: &'static str,
        /// The person who decided it.
        by: String,
    },
    /// It expired.
    #[error("it has expired, and the model has received the denial; ask it to make the call again")]
    Expired,
    /// Its turn is over.
    #[error("its turn was ended, and the call will not be made; ask for it again")]
    Cancelled,
    /// The person saw another call than the parked one.
    #[error(
        "the digest is not this call's, so nothing was decided; look at it again with `talon approval list`"
    )]
    OtherDigest,
    /// It is a question.
    #[error(
        "it is a question, and takes an answer: `talon approval answer ID TEXT`, or `talon approval deny` without one"
    )]
    NeedsAnswer,
    /// It does not fit the plugin's form.
    #[error(
        "the answer does not fit the plugin's form, and the question is still open: {0}; `talon approval show ID` has the form, which \
         one JSON object fills in"
    )]
    Form(#[from] FormAnswerError),
    /// It is a call.
    #[error("it is a call and no question: `talon approval approve` or `deny` it")]
    NoQuestion,
    /// The answer is empty or too long.
    #[error("an answer has 1 to {MAX_ANSWER_BYTES} bytes, not {bytes}")]
    AnswerLength {
        /// Its size.
        bytes: usize,
    },
    /// No rule was made of it.
    #[error("nothing was decided: {0}")]
    Rule(#[from] RuleError),
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
