//! The events that an operator wants to be told of, numbered and kept: what `Subscribe` serves.
//!
//! ```text
//! registry, dispatcher, reloader, services ──emit──► Events (broadcast; never waits)
//!                                                      │ one subscriber
//!                                        classify ◄────┘   which of them are for an operator
//!                                           │
//!                                        coalesce          one for each kind and plugin within the window, with a count
//!                                           │
//!                                        queue (bounded)   while the disk is slow or full
//!                                           │
//!                                        talon-event-log   numbered, synced ──► Subscribe
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `host_event` | kinds, severities, and an event before it has a number |
//! | `classifier` | pure: which of the supervisor's events are for an operator |
//! | `coalescer` | pure: repeated events become one |
//! | `queue` | events that wait for the disk |
//! | `recorder` | the task that does all this, and its handle |
//! | `log_state` | a log as its subscribers see it |
//! | `feed` | the events after a number, as a stream |
//! | `plugin_log`, `known_ids`, `plugin_sink` | events that plugins tell: a log of their own, each id once |
//! | `unread_events` | pure: whose events go before the agent read them |

mod classifier;
mod coalescer;
mod feed;
mod host_event;
mod known_ids;
mod log_state;
mod plugin_log;
mod plugin_sink;
mod queue;
mod recorder;
mod unread_events;

pub(crate) use feed::FeedError;
pub(crate) use plugin_sink::PluginEventSink;
pub use recorder::EventRecorder;
