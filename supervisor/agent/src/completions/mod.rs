//! Completions of language models for plugins: `talon.model.v1`, each plugin on sockets of its own, which the
//! supervisor binds and hands over.
//!
//! ```text
//! plugin ─ model.sock ─► sockets: who is it ─► gate: is there room ─► service ─► complete
//!                                                                                  │ request: does it fit
//!                                             turn's rules and account ◄─ payer ───┤
//!                                                                                  └─► the chain of models
//! ```
//!
//! | file | content |
//! |---|---|
//! | `grant` | what the operator grants |
//! | `plugin` | what all sockets of a plugin share |
//! | `request` | reads what a plugin asks |
//! | `payer` | the turn or the plugin that a completion is charged to |
//! | `own_account` | what a plugin spends without a turn |
//! | `complete`, `record` | one completion; what is counted and traced of it |
//! | `service`, `gate`, `sockets` | the gRPC service, its limits, its connections |
//! | `refusal` | why there is no completion |

mod complete;
mod gate;
mod grant;
mod limits;
mod own_account;
mod payer;
mod plugin;
mod record;
mod refusal;
mod request;
mod service;
mod sockets;

pub(crate) use sockets::{ModelSocketError, ModelSockets};
