//! The Talon supervisor and its command line, as a library: `main.rs` only calls it.
//!
//! | module | what it is |
//! |---|---|
//! | [`cli`] | the verbs of `talon`, one file each |
//! | [`config`] | the one config file, its environment and flags |
//! | [`door`] | the guard stack of every plugin, assembled in one place |
//! | [`host`] | `talon.host.v1.Host` on `host.sock` |
//! | [`serve`] | the supervisor's start and end |
//! | [`state`] | the supervisor's side of kept state |
//! | [`telemetry`] | the log |

pub mod cli;
pub mod config;
pub mod door;
pub mod exit;
pub mod host;
mod inert_json;
mod installed;
pub mod serve;
pub mod state;
pub mod telemetry;
pub use talon_plugin::units;
