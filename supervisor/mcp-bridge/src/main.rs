//! Translates MCP: a plugin that runs in the jail of the MCP server it represents.
//!
//! To the supervisor it is a plugin like any other, built with `talon-sdk`; to the server it is a client,
//! built with the official `rmcp`. So the supervisor never parses MCP, and the process that does is trusted
//! as little as the server.
//!
//! | module | what it does |
//! |---|---|
//! | `command`, `config` | the command line of the supervisor and the settings of the operator |
//! | `connect` | connects to a program or an address and finds out its revision |
//! | `session` | a connected server: its tools, its notifications, its end |
//! | `server_handle` | what a call uses of a connected server |
//! | `server/` | its process, its lines, filtering its messages |
//! | `http/` | streamable HTTP through the supervisor's proxy |
//! | `tools/` | names, schemas, arguments and results |

mod command;
mod config;
mod connect;
mod http;
mod run;
mod server;
mod server_handle;
mod session;
mod tools;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::run(std::env::args_os().skip(1))
}
