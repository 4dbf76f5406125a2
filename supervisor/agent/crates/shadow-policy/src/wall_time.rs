//! Time, as an argument.

/// A moment, by both clocks that the policy needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallTime {
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// Minutes since midnight, by the local clock: 0 to 1439.
    pub local_minute: u16,
}

impl WallTime {
    /// The day since 1970, in UTC: budgets are of a day.
    #[must_use]
    pub const fn day(self) -> u64 {
        self.unix_ms / (24 * 60 * 60 * 1000)
    }

    /// Milliseconds since an earlier moment; 0 if the clock was set back.
    #[must_use]
    pub const fn since(self, earlier_ms: u64) -> u64 {
        self.unix_ms.saturating_sub(earlier_ms)
    }
}
