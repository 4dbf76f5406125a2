//! The harness of the tests of real processes: a scratch directory, a real `talon serve`, a client of its
//! `host.sock`, and eyes on what is left behind.
//!
//! Nothing of the supervisor is mocked. Each test has a supervisor of its own with a uid range of its own,
//! so that what it leaves behind can be told from everybody else's processes.

pub mod appended;
mod client;
mod go;
mod jailed;
mod mcp;
mod postgres;
mod processes;
mod scratch;
pub mod state;
mod supervisor;

pub use client::{Client, args, dial};
pub use go::go_program;
pub use jailed::{InJail, Outcome, ended};
pub use mcp::{Mcp, meta};
pub use postgres::Postgres;
pub use processes::{alive, descendants, in_uid_range, is_root, peak_memory_kib, skip, until};
pub use scratch::{Scratch, example, program, repository, target};
pub use supervisor::{Builder, Left, Stopped, Supervisor, cli, cli_with, sockets_below};
