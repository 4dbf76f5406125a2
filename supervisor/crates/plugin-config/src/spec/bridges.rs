//! Where the programs are that translate foreign protocols.

use std::path::PathBuf;

/// The paths of the bridges, set by the binary. `None`: that bridge is not installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bridges {
    /// `talon-mcp-bridge`: for MCP servers.
    pub mcp: Option<PathBuf>,
    /// `talon-framed-bridge`: for the oldest OpenTalon plugins.
    pub framed: Option<PathBuf>,
    /// `talon-service-bridge`: for go-plugin programs with other services.
    pub service: Option<PathBuf>,
}
