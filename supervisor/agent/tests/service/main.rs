//! The real `talon-agent`, with fakes of supervisor, plugins and clients.

#![expect(clippy::unwrap_used, reason = "a test: what cannot be unwrapped is its failure")]

mod approvals;
mod bus;
mod completions;
mod costs;
mod delegation;
mod follow;
mod hooks;
mod host;
mod images;
mod interrupted;
mod lifecycle;
mod notifications;
mod operations;
mod queries;
mod schedule;
mod sessions;
mod shadow;
mod shadow_status;
mod sink;
mod support;
mod turns;
