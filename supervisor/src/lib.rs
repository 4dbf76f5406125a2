//! The Talon supervisor and its command line, as a library: `main.rs` only calls it.
//!
//! | module | what it is |
//! |---|---|
//! | [`admin`] | health and metrics over HTTP on `admin.sock` |
//! | [`agent`] | the supervisor's side of the agent |
//! | [`audit`] | who called what, and who did what |
//! | [`cli`] | the verbs of `talon`, one file each |
//! | [`config`] | the one config file, its environment and flags |
//! | [`door`] | the guard stack of every plugin, assembled in one place |
//! | [`host`] | `talon.host.v1.Host` on `host.sock` |
//! | [`serve`] | the supervisor's start and end |
//! | [`service`] | what it has of a service of its own, whichever it is |
//! | [`state`] | the supervisor's side of kept state |

pub mod admin;
pub mod agent;
pub mod audit;
pub mod cli;
pub mod config;
pub mod door;
pub mod exit;
pub mod host;
mod installed;
mod sentence;
pub mod serve;
pub mod service;
pub mod state;
pub use talon_plugin::units;
