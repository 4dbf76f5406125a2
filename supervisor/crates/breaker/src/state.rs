//! The state of a breaker.

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// Calls are refused. It stays in this state until the first call after its time.
    Open,
    /// One call is tried, the others are refused.
    HalfOpen,
}

impl BreakerState {
    /// The value for programs: `closed`, `open` or `half_open`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}
