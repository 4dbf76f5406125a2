//! `talon.agent.v1.Agent`, on the connections that the supervisor passes to the agent.
//!
//! One file for each group of requests. Each connection carries its client ([`Client`]), whose role decides
//! what it may see and do:
//!
//! | role | sessions, turns, approvals | beyond |
//! |---|---|---|
//! | call | their own | models, tools, memories that are theirs or everybody's |
//! | operate, admin | everybody's, when asked for by id or with `all` | costs of all, metrics |
//!
//! `client` in `service` is the one place that says who a request is for. There, too, all that change something are recorded (`change`,
//! `recording`).
//!
//! Only people may decide approvals, whatever the role. A session that a client may not see is reported as
//! missing.

mod approvals;
mod ask;
mod bus;
mod change;
mod client;
mod complete;
mod costs;
mod embed;
mod event_stream;
mod extensions;
mod follow_limiter;
mod forget;
mod known_names;
mod large_body;
mod limits;
mod memories;
mod message_counts;
mod models;
mod notifications;
mod plans;
mod proposals;
mod recording;
mod request_limiter;
mod sampling;
mod schedule;
mod server;
mod service;
mod session_change;
mod session_counts;
mod sessions;
mod shadow;
mod status;
mod tools;
mod turn_admission;
mod turn_stream;

pub(crate) use client::{Client, ClientError};
pub(crate) use server::Server;
