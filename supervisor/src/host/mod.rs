//! `talon.host.v1.Host` on `host.sock`: the supervisor's API.
//!
//! One file for each group of requests. `service` answers them with what
//! `context` holds. Kernel credentials identify the client (`crate::peer`).

mod accept;
mod agent_connection;
mod audit_log;
mod calls;
mod closing;
mod configuration;
mod connection;
mod context;
mod credentials;
mod diagnosis;
mod doctor_run;
mod events;
mod exit_requests;
mod extensions;
mod gate;
mod limits;
mod operate;
#[cfg(test)]
mod pending_host;
mod plugin_roles;
mod plugins;
mod raw_answers;
mod receipts;
mod reload;
mod series;
mod server;
mod service;
mod state_proxy;
mod status;
mod streams;

pub use talon_listen::{DRAINING, FRAME_BYTES, WINDOW_BYTES};

pub use crate::dispatch::{report_on_wire, response};
pub use crate::socket::{BindError, HOST_SOCKET_NAME as SOCKET_NAME};
pub use accept::LivenessProbe;
pub use agent_connection::serve_agent;
pub use closing::{HANDING_OVER, StreamCloser};
pub use context::SupervisorInfo;
pub(crate) use doctor_run::is_doctor;
pub use exit_requests::{ExitRequest, ExitSender, HandOverError, exit_channel};
pub use limits::RequestLimits;
pub use server::{ServeError, Server};
pub use service::HostService;
pub use state_proxy::StateProxy;
