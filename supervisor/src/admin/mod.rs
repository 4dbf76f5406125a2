//! Health and metrics over HTTP, on `admin.sock` in the runtime directory and on inherited listeners.
//! Everything is read-only, and of a request only its method and path are used (and its Host header on TCP).
//!
//! | path | answer |
//! |---|---|
//! | `/healthz` | 200 as long as the event loop answers |
//! | `/readyz` | 200 when every plugin's first start has ended and calls are accepted; otherwise 503 with the reason |
//! | `/metrics` | metrics, in Prometheus' text format |
//!
//! | module | contents |
//! |---|---|
//! | `listener` | listeners, and which peers may connect |
//! | `server` | the running server: one connection, one request, with limits |
//! | `sources` | where the values come from |
//! | `routes` | the answer to each path |
//! | `ready` | the result of `/readyz` |
//! | [`metrics`] | the catalogue, the recorder, and the text format |
//! | `collector` | collects the values at a scrape |
//! | `state_usage` | the size of the plugins' state |
//! | `agent` | the agent's metrics |

mod agent;
mod build;
mod collector;
mod listener;
pub mod metrics;
mod ready;
mod routes;
mod server;
mod sources;
mod state_usage;

pub use listener::{AdmissionPolicy, Listener, ListenerError, SOCKET_NAME};
pub use server::{Admin, listeners, start};
pub use sources::Sources;
