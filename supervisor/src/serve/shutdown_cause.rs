//! Why the supervisor ends.

use super::failure::ServeFailure;
use super::signals::StopCause;

/// Why the supervisor ends.
pub(super) enum ShutdownCause {
    /// A signal, or its lifeline was cut.
    Stop(StopCause),
    /// There was no client and no call for long enough.
    Idle,
    /// A client asked for it.
    Requested,
    /// Another supervisor has taken over.
    HandedOver,
    /// A failure; nothing of another supervisor was taken over.
    Failed(ServeFailure),
    /// The takeover from another supervisor failed; that one continues.
    TakeoverFailed(ServeFailure),
}
