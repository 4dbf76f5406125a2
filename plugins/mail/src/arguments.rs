//! The arguments of the action.

use talon_sink::notification::Event;

#[talon_sdk::args]
pub(crate) struct Notification {
    /// The event.
    pub(crate) event: Event,
    /// The events of a digest.
    #[serde(default)]
    pub(crate) events: Vec<Event>,
    /// The number of the attempt, from 1.
    #[serde(default)]
    pub(crate) attempt: u32,
}
