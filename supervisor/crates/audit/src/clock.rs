//! The time of a record.

use std::time::{SystemTime, UNIX_EPOCH};

/// The system time, which may jump; records are ordered by their number.
pub(crate) fn unix_ms(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
