//! `talon mcp`: the plugins' actions for MCP hosts, and MCP servers as plugins.

mod import;
mod login;
mod logout;
mod offer;
mod remote_server;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;
use crate::runtime::block_on_pool;

/// Offer the plugins' actions to an MCP host, such as an editor, on standard input and output, or to clients
/// over HTTP.
///
/// Every call passes through the supervisor's guard stack, and every plugin runs in its jail. The tools are
/// named plugin__action. An MCP host starts this command itself; its configuration needs one entry:
/// {"mcpServers": {"talon": {"command": "talon", "args": ["mcp"]}}}
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  talon mcp
  talon mcp --allow git --allow 'files__read_*' --deny git__push
  talon mcp --own --config ~/.config/talon/editor.yaml
  talon mcp --http 127.0.0.1:8400 --token-file ~/.config/talon/mcp-token
  talon mcp import ~/.cursor/mcp.json
  talon mcp login issues"
)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    verb: Option<McpVerb>,
    #[command(flatten)]
    offer: offer::OfferArgs,
}

#[derive(Debug, Subcommand)]
enum McpVerb {
    Import(import::ImportArgs),
    Login(login::LoginArgs),
    Logout(logout::LogoutArgs),
}

impl McpArgs {
    pub(crate) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        match self.verb {
            None => self.offer.run(global),
            Some(McpVerb::Import(args)) => args.run(out),
            Some(McpVerb::Login(args)) => block_on_pool(args.run(global, out)),
            Some(McpVerb::Logout(args)) => block_on_pool(args.run(global, out)),
        }
    }
}
