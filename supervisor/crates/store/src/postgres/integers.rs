//! Converts integers: the engine has no unsigned ones.

/// Converts our numbers for the engine. Numbers from outside are checked when they come in.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts back: none of them was ever negative.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
