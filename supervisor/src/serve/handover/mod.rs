//! Handover from one supervisor to the next, while the plugins keep running.
//!
//! ```text
//!            freeze                       pack                     release
//! running ─► no new connections,  ─► a bundle ────┬─► store: the service manager keeps it ─► exit 0
//!    ▲       calls finish,           of all state │                    ▼ found at the next start
//!    │       state is closed                      └─► takeover: sent to the other one ── Taken ─► exit 0
//!    └─────────────── thaw: the handover failed ─────────────┘ it failed, died or was too slow
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `document` | the data that accompanies the descriptors |
//! | `freeze` | freeze and thaw |
//! | `store` | handover to the next supervisor through the service manager |
//! | `takeover` | handover to a supervisor that asked on `host.sock` |
//! | `rendezvous`, `wire` | the connection of those two, and its messages |
//! | `acquire` | the successor's side of both |
//!
//! Opening a bundle does not consume it, so that it stays complete if a successor fails. Under a service
//! manager the store still has it then, and otherwise the old supervisor has not released anything yet.

mod acquire;
mod document;
mod freeze;
mod rendezvous;
mod store;
mod takeover;
mod wire;

pub use acquire::TakeoverError;
pub(super) use acquire::{AcquiredState, acquire};
pub(super) use takeover::TakeoverOutcome;
