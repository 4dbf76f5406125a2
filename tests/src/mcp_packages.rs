//! The official Python library of MCP, for servers and clients that tests run.

use std::path::PathBuf;

use talon_harness::{skip, target};

/// The environment with the library.
#[must_use]
pub fn mcp_packages() -> PathBuf {
    target().join("mcp/python")
}

/// Whether it is not installed; then the test is skipped by its name.
#[must_use]
pub fn without_mcp_packages(test: &str) -> bool {
    let missing = !mcp_packages().join("bin/python").exists();
    if missing {
        skip(test, "there is no target/mcp/python (tests/scripts/deps.sh test installs it)");
    }
    missing
}
