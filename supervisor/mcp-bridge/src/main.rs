//! Translates MCP: a plugin that runs in the jail of the server it stands in front of.
//!
//! To the supervisor it is a plugin like any other, built with `talon-sdk`; to the server it is a client, built with the
//! official `rmcp`. So the supervisor parses nothing of MCP, and what does is trusted as little as the server.
//!
//! | module | what it does |
//! |---|---|
//! | `command`, `config` | what the supervisor and the operator say |
//! | `connect` | from a program or an address to a server whose revision is known |
//! | `session` | a connected server: its tools, its news, its end |
//! | `server/` | its process, its lines, what of its messages is for whom |
//! | `http/` | streamable HTTP through the supervisor's proxy |
//! | `tools/` | names, schemas, arguments and results |

mod command;
mod config;
mod connect;
mod http;
mod run;
mod server;
mod session;
mod text;
mod tools;

use std::process::ExitCode;

fn main() -> ExitCode {
    run::run(std::env::args_os().skip(1))
}
