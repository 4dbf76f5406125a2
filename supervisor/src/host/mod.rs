//! `talon.host.v1.Host` on `host.sock`: the supervisor's API.
//!
//! One file for each group of requests. `service` answers them with what
//! `context` holds. Kernel credentials identify the client (`authorized_peer`).

mod accept;
mod agent_connection;
mod authorization;
mod authorized_peer;
mod call_id;
mod closing;
mod connection;
mod context;
mod execute;
mod exit_requests;
mod gate;
mod limits;
mod operate;
#[cfg(test)]
mod pending_host;
mod plugins;
mod raw_answers;
mod reload;
mod server;
mod service;
mod state_proxy;
mod status;
mod streams;
mod to_wire;

pub use talon_listen::{DRAINING, FRAME_BYTES, WINDOW_BYTES};

pub use crate::socket::{BindError, HOST_SOCKET_NAME as SOCKET_NAME};
pub use accept::{LivenessProbe, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_UID};
pub use agent_connection::serve_agent;
pub use closing::{HANDING_OVER, StreamCloser};
pub use context::SupervisorInfo;
pub use execute::{report_on_wire, response};
pub use exit_requests::{ExitRequest, ExitSender, exit_channel};
pub use limits::{MAX_FOLLOWERS, MAX_REQUESTS, MAX_REQUESTS_PER_UID, MAX_STREAMS_PER_CONNECTION};
pub use server::{ServeError, Server};
pub use service::HostService;
pub use state_proxy::StateProxy;
