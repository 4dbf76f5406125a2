//! Events that plugins tell (`talon.plugin.v1.EventSource`): read no faster than the operator lets them, checked, given to the
//! host's log, and acknowledged once they are on its disk.
//!
//! | module | contents |
//! |---|---|
//! | `source_event` | pure: an event within its limits |
//! | `event_rate` | pure: how many events a plugin may tell |
//! | `event_sink` | where they go, as a trait; the counters of one plugin |
//! | `event_intake` | the task that reads them |

mod event_intake;
mod event_rate;
mod event_sink;
mod source_event;

pub(crate) use event_intake::EventIntake;
pub(crate) use event_sink::SinkSlot;
pub use event_sink::{EventCounters, EventLimits, EventSink, RecordedEvents};
pub use source_event::{EventError, EventSeverity, SourceEvent};
