//! Why a request to the shadow loop is refused.

use talon_shadow_policy::MAX_MUTED;

/// Why a request is refused. Nothing changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShadowError {
    #[error("the shadow loop is off: set `shadow.enabled: true` in the configuration and reload")]
    Off,
    #[error("there is no ghost {id}: `talon shadow list` shows those there are")]
    NoSuchGhost { id: String },
    #[error("several ghosts begin with {id}: write more of it")]
    Ambiguous { id: String },
    #[error("the ghost is {state} already: only one that waits or is snoozed is decided about")]
    Decided { state: String },
    #[error("it offers no act: {why}")]
    NoAct { why: String },
    #[error("it has no action {label:?}: `talon shadow show` lists them")]
    NoSuchAction { label: String },
    #[error("{MAX_MUTED} repositories are muted, which is the most: resume one of them")]
    TooManyMuted,
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] talon_store::Error),
}
