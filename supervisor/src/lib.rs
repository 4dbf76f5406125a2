//! The Talon supervisor and its command line, as a library: `main.rs` only calls it.
//!
//! | module | contents |
//! |---|---|
//! | [`admin`] | health and metrics over HTTP on `admin.sock` |
//! | [`agent`] | the supervisor's side of the agent |
//! | [`audit`] | the audit log of calls and operations |
//! | [`cli`] | the verbs of `talon`, one file each |
//! | [`config`] | the config file, environment variables and flags |
//! | [`door`] | the dispatcher: the guard stack of every plugin |
//! | [`host`] | `talon.host.v1.Host` on `host.sock` |
//! | [`serve`] | start, reload, handover and stop of the supervisor |
//! | [`service`] | the common part of the supervisor's own services |
//! | [`state`] | the supervisor's side of the state service |

pub mod admin;
pub mod agent;
pub mod audit;
pub mod cli;
pub mod config;
pub mod dispatch;
pub mod exit;
pub mod host;
mod program_lookup;
pub mod serve;
pub mod service;
pub mod state;
mod status_summary;
pub use talon_plugin_config::units;
