//! Points in time: of schedules, and of the store.

use std::time::SystemTime;

use talon_schedule::Timestamp as Moment;
use talon_store::Timestamp;

/// The store's times are whole milliseconds, as planned times are.
pub(crate) fn stored(at: Moment) -> Timestamp {
    Timestamp::from_millis(at.as_millisecond())
}

/// Back from the store: its times are from 1970 to 9999.
pub(crate) fn moment(at: Timestamp) -> Moment {
    Moment::from_millisecond(at.as_millis()).unwrap_or(Moment::MAX)
}

/// The present time.
pub(crate) fn now() -> Moment {
    Moment::try_from(SystemTime::now()).unwrap_or(Moment::UNIX_EPOCH)
}
