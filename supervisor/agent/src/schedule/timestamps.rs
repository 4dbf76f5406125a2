//! Points in time: of schedules, and of the store.

use std::time::SystemTime;

use talon_schedule::Timestamp as ScheduleTime;
use talon_store::Timestamp;

/// The store's times are whole milliseconds, as planned times are.
pub(crate) fn to_store(at: ScheduleTime) -> Timestamp {
    Timestamp::from_millis(at.as_millisecond())
}

/// Back from the store: its times are from 1970 to 9999.
pub(crate) fn from_store(at: Timestamp) -> ScheduleTime {
    ScheduleTime::from_millisecond(at.as_millis()).unwrap_or(ScheduleTime::MAX)
}

/// The present time.
pub(crate) fn now() -> ScheduleTime {
    ScheduleTime::try_from(SystemTime::now()).unwrap_or(ScheduleTime::UNIX_EPOCH)
}
