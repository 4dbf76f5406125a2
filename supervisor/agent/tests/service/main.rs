//! The real `talon-agent`, with a supervisor, plugins and clients that are the tests'.

#![expect(clippy::unwrap_used, reason = "a test: what cannot be unwrapped is its failure")]

mod approvals;
mod costs;
mod host;
mod interrupted;
mod lifecycle;
mod queries;
mod sessions;
mod support;
mod turns;
