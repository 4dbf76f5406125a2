//! What the agent emits on the event bus, as far as it is not emitted where it happens.
//!
//! | file | content |
//! |---|---|
//! | `turn_observer` | what a turn does: messages, tools, thinking, and what the guard did to its calls |
//! | `host_relay` | what the supervisor says of plugins, of the guard and of its configuration |
//!
//! The bus itself, its kinds and their payloads are in `talon-event-bus`; `docs/events.md` says who emits what.

mod host_relay;
mod turn_observer;

pub(crate) use host_relay::{HostFeed, relay_host};
pub(crate) use turn_observer::BusObserver;
