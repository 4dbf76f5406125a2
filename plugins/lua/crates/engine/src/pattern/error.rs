//! What can go wrong in a pattern.

use thiserror::Error;

/// Why a match ended without a result. The texts are Luau's, to the letter: scripts compare them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum PatternError {
    /// The time of the call is over: no text of the language.
    #[error("the time of the call is over")]
    Stopped,
    #[error("pattern too complex")]
    TooComplex,
    #[error("malformed pattern (ends with '%')")]
    EndsWithPercent,
    #[error("malformed pattern (missing ']')")]
    SetNotClosed,
    #[error("malformed pattern (missing arguments to '%b')")]
    BalanceWithoutArguments,
    #[error("missing '[' after '%f' in pattern")]
    FrontierWithoutSet,
    #[error("too many captures")]
    TooManyCaptures,
    #[error("invalid pattern capture")]
    NothingToClose,
    /// A back reference; the digit after `%`.
    #[error("invalid capture index %{0}")]
    NoSuchReference(u8),
    #[error("invalid capture index")]
    NoSuchCapture,
    #[error("unfinished capture")]
    CaptureNotClosed,
}
