//! The Talon supervisor, as a library: it reads the configuration, runs the plugins, and serves `host.sock`
//! and `admin.sock`. The command line, the package `talon`, calls it.
//!
//! | module | contents |
//! |---|---|
//! | [`admin`] | health and metrics over HTTP on `admin.sock` |
//! | [`agent`] | the supervisor's side of the agent |
//! | [`audit`] | the audit log of calls and operations |
//! | [`config`] | the config file, environment variables and flags |
//! | [`credentials`] | access to the gateway |
//! | `discover` | finds plugins |
//! | [`dispatch`] | the dispatcher: the guard stack of every plugin |
//! | [`events`] | what an operator wants to be told of, numbered and kept |
//! | [`gateway`] | the supervisor's side of the gateway |
//! | [`host`] | `talon.host.v1.Host` on `host.sock` |
//! | `notify` | messages to a service manager |
//! | [`peer`] | the peer of a connection, and its role |
//! | [`receipts`] | proofs of the agent's calls |
//! | [`reload`] | changes of configuration and plugins at runtime |
//! | [`program_lookup`] | the other programs that are installed with `talon` |
//! | [`serve`] | start, handover and stop of the supervisor |
//! | [`series`] | numbers over time |
//! | [`service`] | the common part of the supervisor's own services |
//! | [`socket`] | the supervisor's unix sockets |
//! | [`state`] | the supervisor's side of the state service |
//! | [`usage`] | resource usage of processes |

pub mod admin;
pub mod agent;
pub mod audit;
mod blocking;
pub mod config;
pub mod credentials;
mod discover;
pub mod dispatch;
pub mod events;
pub mod gateway;
pub mod host;
mod notify;
pub mod peer;
pub mod program_lookup;
pub mod receipts;
pub mod reload;
mod script_audit;
pub mod series;
pub mod serve;
pub mod service;
pub mod socket;
pub mod state;
mod to_wire;
pub mod usage;
