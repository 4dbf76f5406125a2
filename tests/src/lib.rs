//! What the tests of real processes share, besides the harness that starts a supervisor: a scripted agent,
//! providers, MCP clients, machines, terminals.

pub mod agent;
pub mod ask;
pub mod collector;
pub mod conformance_suite;
pub mod exposition;
pub mod gateway_client;
mod go;
pub mod http;
pub mod interop;
mod jailed;
pub mod journal;
mod kills;
mod machine;
mod mcp;
mod mcp_over_http;
mod mcp_packages;
pub mod message_batches;
mod package;
mod postgres;
pub mod provider;
pub mod screenshot;
mod server_script;
mod service_manager;
pub mod state;
mod terminal;
pub mod test_agent;
mod traffic;
pub mod turn_chunks;

pub use go::go_program;
pub use jailed::{JailedFixture, Outcome, ended};
pub use kills::kills;
pub use machine::Machine;
pub use mcp::{Mcp, meta};
pub use mcp_over_http::McpOverHttp;
pub use mcp_packages::{mcp_packages, without_mcp_packages};
pub use package::package;
pub use postgres::Postgres;
pub use server_script::ServerScript;
pub use service_manager::{ServiceManager, listening, seqpacket_pair};
pub use terminal::Terminal;
pub use traffic::{Traffic, install_over, install_script_over};

pub use talon_harness::{
    Builder, Client, Leftovers, Scratch, SiblingSupervisor, Stopped, Supervisor, alive, args, cli, cli_with,
    descendants, dial, example, in_uid_range, is_root, peak_memory_kib, program, repository, skip,
    sockets_below, target, until,
};
