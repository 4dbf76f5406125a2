//! The common part of the supervisor's own services (state and agent): status, one session per process, a
//! queue of connections, and health checks.
//!
//! ```text
//! registry ─ Link ─► ServiceHandle ── one session per process ══ control: reconcile ⇒ receive ══► the service
//!                      │
//!                      └─► status, events, log
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `managed_service` | the trait that each service implements |
//! | `handle` | the state that outlives its processes |
//! | `session` | one process, from start to end |
//! | `status` | its status |
//! | `bounded_queue` | connections that wait to be passed to it |
//! | `connect` | the supervisor's own connections to it |
//! | `health` | health checks |
//! | `database_paths` | the paths of a database server that its jail shows |

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
