//! The harness of the tests of real processes: a scratch directory, a real `talon serve`, a client of its
//! `host.sock`, and checks of what is left behind.
//!
//! Nothing of the supervisor is mocked. Each test has a separate supervisor with a separate uid range,
//! so that its leftovers can be told from the processes of others.

pub mod agent;
pub mod ask;
mod client;
pub mod collector;
pub mod exposition;
mod go;
pub mod http;
mod jailed;
pub mod journal;
mod machine;
mod mcp;
pub mod message_batches;
mod package;
mod postgres;
mod processes;
pub mod provider;
mod scratch;
pub mod screenshot;
mod service_manager;
pub mod state;
mod supervisor;
mod terminal;
pub mod test_agent;
mod traffic;
mod uids;

pub use client::{Client, args, dial};
pub use go::go_program;
pub use jailed::{JailedFixture, Outcome, ended};
pub use machine::Machine;
pub use mcp::{Mcp, meta};
pub use package::package;
pub use postgres::Postgres;
pub use processes::{alive, descendants, in_uid_range, is_root, peak_memory_kib, skip, until};
pub use scratch::{Scratch, example, program, repository, target};
pub use service_manager::{ServiceManager, listening, seqpacket_pair};
pub use supervisor::{
    Builder, Leftovers, SiblingSupervisor, Stopped, Supervisor, cli, cli_with, sockets_below,
};
pub use terminal::Terminal;
pub use traffic::{Traffic, install_over, install_script_over};
