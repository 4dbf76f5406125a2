//! The client of a plugin's wire: what it prints when it listens, verified connections to it, and calls over
//! them.
//!
//! ```text
//! handshake line ── handshake ──► Target (connect) ──► Client ── execute, health, capabilities, notices ──► plugin
//! ```
//!
//! Nothing here starts or watches a process, and nothing that a plugin sends is trusted: addresses are
//! checked on every connection, and texts are bounded and sanitized.

pub mod capability;
mod client;
pub mod connect;
mod execute_error;
pub mod handshake;
pub mod socket_dir;

pub use capability::Capability;
pub use client::{
    Client, HealthStatus, InitError, InitOutcome, LinkError, Methods, PendingCall, RawCall, RefreshError,
    StdioPiece, StdioReader, describe_status,
};
pub use execute_error::{ExecuteError, MAX_STATUS_MESSAGE_CHARS};
