//! What the supervisor has of a service of its own, whichever it is: how it is, one session a process of it, connections that wait
//! for one, and whether it still answers.
//!
//! ```text
//! registry ─ Link ─► Held ── one session a process ══ control: Kind::give ⇒ Kind::hear ══► the service
//!                      │
//!                      └─► Status, events, log
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `kind` | what one service differs in from another |
//! | `held` | what outlives its processes |
//! | `session` | one process of it, from its start to its end |
//! | `status` | how it is |
//! | `waiting` | what waits to be handed over |
//! | `connect` | connections of our own to it |
//! | `health` | whether it still answers |
//! | `server` | what it has to see of a database server |

mod connect;
mod health;
mod held;
mod kind;
mod server;
mod session;
mod status;
mod waiting;

pub(crate) use connect::{Connector, channel, connector};
pub use health::HealthChecks;
pub(crate) use health::watch;
pub(crate) use held::Held;
pub(crate) use kind::{Kind, Line};
pub(crate) use server::of_server;
pub use status::{KeeperState, KeeperStatus};
pub(crate) use status::{Passing, said};
pub(crate) use waiting::Waiting;
