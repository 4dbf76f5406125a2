//! Other people's programs with Talon: MCP servers as plugins, and MCP clients of `talon mcp`.
//!
//! The lists in `tests/interop` name each program by its exact version, with what has to come of it.
//! `talon-interop` runs all of them and writes the table; a test runs the clients that `make test` keeps.

pub mod client;
pub mod import;
pub mod list;
pub mod server;
pub mod service;
pub mod table;
pub mod verdict;
pub mod world;

use std::path::PathBuf;

/// Where the lists and the clients' programs are.
#[must_use]
pub fn sources() -> PathBuf {
    talon_harness::repository().join("tests/interop")
}

/// Where packages are installed, and stay for the next run.
///
/// # Panics
/// When it cannot be made.
#[must_use]
pub fn packages() -> PathBuf {
    let path = talon_harness::target().join("interop");
    std::fs::create_dir_all(&path).expect("the target directory takes directories");
    // A grant is a path without links, and `target` may be one.
    path.canonicalize().expect("it was just made")
}
