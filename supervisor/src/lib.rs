//! The Talon supervisor, as a library: it reads the configuration, runs the plugins, and serves `host.sock` and
//! `admin.sock`. The command line, the package `talon`, calls it.
//!
//! | module | contents |
//! |---|---|
//! | [`admin`] | health and metrics over HTTP on `admin.sock` |
//! | [`agent`] | the supervisor's side of the agent |
//! | [`audit`] | the audit log of calls and operations |
//! | [`config`] | the config file, environment variables and flags |
//! | [`dispatch`] | the dispatcher: the guard stack of every plugin |
//! | [`host`] | `talon.host.v1.Host` on `host.sock` |
//! | [`program_lookup`] | the other programs that are installed with `talon` |
//! | [`serve`] | start, reload, handover and stop of the supervisor |
//! | [`service`] | the common part of the supervisor's own services |
//! | [`state`] | the supervisor's side of the state service |

pub mod admin;
pub mod agent;
pub mod audit;
pub mod config;
pub mod dispatch;
pub mod host;
pub mod program_lookup;
pub mod serve;
pub mod service;
pub mod state;
