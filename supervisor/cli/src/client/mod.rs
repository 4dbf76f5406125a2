//! Verbs that are clients of a running supervisor, over `host.sock`, or of its agent, over `agent.sock`.
//!
//! They know the supervisor by its API alone: nothing in here names its library. They are given the
//! [`HostSocket`](crate::host_socket::HostSocket) to connect to.

pub(crate) mod agent;
pub(crate) mod call;
mod call_progress;
mod call_question;
mod call_screen;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod event;
mod form_filler;
pub(crate) mod gateway;
pub(crate) mod plugin;
pub(crate) mod reload;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod token;
