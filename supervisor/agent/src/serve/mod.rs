//! `talon.agent.v1.Agent`, on the connections that the supervisor hands in.
//!
//! One file for each group of requests. Who asks is said with the connection ([`Client`]); what they may see and do:
//!
//! | role | sessions, turns, approvals | beyond |
//! |---|---|---|
//! | call | their own | models, tools, memories that are theirs or everybody's |
//! | operate, admin | everybody's, when asked for by id or with `all` | costs of all, metrics |
//!
//! Decisions on approvals are for people alone, whatever the role. A session that somebody may not see is one that is not there.

mod approvals;
mod ask;
mod client;
mod costs;
pub(crate) mod failure;
mod gate;
mod limits;
mod memories;
mod models;
mod server;
mod service;
mod sessions;
mod status;
mod tools;

pub(crate) use client::{BadClient, Client};
pub(crate) use server::Server;
