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
//! | `spec` | how it is run |
//! | `bounded_queue` | connections that wait to be passed to it |
//! | `connect` | the supervisor's own connections to it |
//! | `health` | health checks |
//! | `silence` | a service that gives no answers: whether it hangs, or is busy |
//! | `processor_time` | how much a process has used, since one that is busy answers later |
//! | `database_paths` | the paths of a database server that its jail shows |

mod bounded_queue;
mod connect;
mod database_paths;
mod handle;
mod health;
mod managed_service;
mod processor_time;
mod session;
mod silence;
mod spec;
mod status;

pub(crate) use bounded_queue::BoundedQueue;
pub(crate) use connect::{channel, connector};
pub(crate) use database_paths::database_paths;
pub(crate) use handle::ServiceHandle;
pub use health::HealthChecks;
pub(crate) use health::watch;
pub(crate) use managed_service::{ControlSocket, ManagedService};
pub(crate) use spec::service_spec;
pub use status::{ManagedServiceState, ManagedServiceStatus};
pub(crate) use status::{RetryHint, sanitize_report};

/// The name of the state service in logs and events.
pub(crate) const STATE_SERVICE: &str = "state service";
