//! Tells people of events, through actions in the role `notification_sink`.
//!
//! ```text
//!  approvals, budgets, tasks, jobs ─ notify ─► EventQueue ─┐ EventWriter
//!  the supervisor's events, by number ─────────────────────┼─► rules ─► store: notifications, and the number
//!  talon notification test, deliver ─ notify_entry ────────┘                │
//!                                                                           ▼
//!       a Lane for each entry of the configuration: due ─► claim ─► sink ─► end of the attempt
//! ```
//!
//! - `event`: events within their bounds; `payload`: what a notification stores of them
//! - `rules`: which entries an event is for, and when; `group`: which events are one. Pure.
//! - `queue`: events that are not written yet, bounded; `writer`: rules and store
//! - `update`: what the event bus is told; `sink`: one attempt; `backoff`: when the next one is; `lane`: the attempts of an entry, and `signal`, which
//!   has it look
//! - `host_events`: the supervisor's events; `sources`: those of other parts of the agent
//! - `notifier`: what the rest of the agent sees
//!
//! A notification is a row before anybody is told, so that it survives this process. What is told has the same
//! id in every attempt.

mod backoff;
mod event;
mod group;
mod host_events;
mod lane;
mod lanes;
mod notifier;
mod payload;
mod queue;
mod rules;
mod signal;
mod sink;
mod sources;
mod update;
mod writer;

pub(crate) use event::NewEvent;
pub(crate) use host_events::{HostEvents, follow_host};
pub(crate) use lanes::Lanes;
pub(crate) use notifier::{EventObserver, Notifier, NotifyError};
pub(crate) use payload::Payload;
pub(crate) use sources::{
    BudgetEvents, ReportingRunner, approval_waiting, ghost_waiting, room_changed, schedule_failed,
    schedule_proposed,
};
