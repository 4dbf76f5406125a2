//! Events between the parts of one process, and to those who watch it.
//!
//! ```text
//!  emitter ─ emit ─► EventBus ─┬─► queue of a Subscription ─► stream of a client
//!  (never waits)               ├─► queue of a handler (`on`) ─► its task
//!                              └─► queue of one (`once`) ─► its task
//! ```
//!
//! - The kinds are a closed list ([`EventKind`]): a misspelt one does not compile, and one from outside is refused with the nearest.
//! - Each kind has a typed payload, a message of `talon.agent.v1`.
//! - Each subscriber has a queue of its own of [`MAX_WAITING`] events. When it is full, the oldest event goes, and the subscriber is told
//!   how many are missing ([`Delivery::Missed`]), exactly where they are missing.
//! - An emitter takes two locks for the time of a push, and runs nothing of a subscriber: handlers run on tasks of their own.
//! - Nothing is kept. What has to survive a kill is in a journal, a log or an outbox instead.
//!
//! | file | content |
//! |---|---|
//! | `kind` | the list of kinds: names, emitters, payloads |
//! | `kind_set` | some of them, as a subscriber names them |
//! | `bus`, `registry` | emits; the subscribers |
//! | `mailbox` | the queue of one subscriber |
//! | `subscription`, `handler` | its reading end; functions that are called |
//! | `excerpt` | the beginning of a long text |

mod bus;
mod excerpt;
mod handler;
mod kind;
mod kind_set;
mod mailbox;
mod registry;
mod subscription;

pub use bus::{EventBus, Subject};
pub use excerpt::{MAX_TEXT_BYTES, excerpt};
pub use handler::HandlerHandle;
pub use kind::{EventKind, UnknownKindError};
pub use kind_set::KindSet;
pub use mailbox::{Delivery, MAX_WAITING};
pub use registry::{MAX_SUBSCRIBERS, TooManySubscribersError};
pub use subscription::Subscription;
pub use talon_proto::agent::BusEvent;
pub use talon_proto::agent::bus_event::Payload;
