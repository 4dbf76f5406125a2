//! Start, operation and end of the supervisor.
//!
//! ```text
//! log ─► inherited state ─► runtime directory (lock) ─► state ─► host.sock ─► plugins ─► ready
//!                                                                                              │ SIGTERM, SIGINT
//! exit 0 ◄─ socket removed ◄─ plugins, then state stopped ◄─ calls in flight finished ◄────────┤
//! exit 0 ◄─ the next supervisor has everything, and the plugins keep running ◄─ handover ◄─────┘
//! ```
//!
//! A failure before *ready* undoes all earlier steps, by dropping them. State that another supervisor offered
//! stays with that one, or in the store it came from.
//!
//! | module | contents |
//! |---|---|
//! | `machine` | what this machine can enforce |
//! | `state_service` | the service that stores the plugins' state |
//! | `agent` | the agent, and `agent.sock` |
//! | `gateway` | the gateway, and its listener |
//! | `peers`, `process_tree` | identifies clients of `host.sock` |
//! | `start` | the start, step by step |
//! | `ready` | the end of the start |
//! | `lifecycle`, `running` | from then to the end; what runs, and how it stops |
//! | `shutdown_cause` | why it ends |
//! | `idle` | when it has no more work |
//! | `signals` | signals that stop it |
//! | `handover` | handover to the next supervisor |
//! | `status_line`, `watchdog` | messages to a service manager |
//! | `inherited` | sockets from a service manager |
//! | `hardening` | restrictions of the supervisor process itself |
//! | `admin_listeners` | `admin.sock`, while this supervisor serves |
//! | `files` | watched files |

mod admin_listeners;
mod agent;
mod descriptors;
mod failure;
mod files;
mod gateway;
mod handover;
mod hardening;
mod idle;
pub(crate) mod inherited;
mod lifecycle;
mod machine;
mod peers;
mod process_tree;
mod ready;
mod running;
mod shutdown_cause;
mod signals;
mod start;
pub mod state_service;
mod status_line;
mod watchdog;

pub use crate::discover::{FoundNames, find as find_plugins, unknown_overrides};
pub use failure::ServeFailure;
pub use handover::TakeoverError;
pub use hardening::confine;
pub use inherited::{AdminListener, InheritedError, InheritedSockets};
pub use machine::{STAND_IN, not_enforced};
pub use signals::{Lifeline, stdin_lifeline};
pub use start::{StartOptions, serve};
