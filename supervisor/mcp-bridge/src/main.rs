//! Translates MCP: a plugin that runs in the jail of the MCP server it represents.
//!
//! To the supervisor it is a plugin like any other, built with `talon-sdk`; to the server it is a client,
//! built with the official `rmcp`. So the supervisor never parses MCP, and the process that does is trusted
//! as little as the server.
//!
//! | module | what it does |
//! |---|---|
//! | `command`, `config` | the command line of the supervisor and the settings of the operator |
//! | `connect`, `connect_error` | connects to a program or an address |
//! | `negotiate` | finds out which revision a server speaks |
//! | `session` | a connected server: its tools, its notifications, its end |
//! | `server_handle` | what a call uses of a connected server |
//! | `server/` | its process, its lines, filtering its messages |
//! | `http/` | streamable HTTP, and what was before it, through the supervisor's proxy |
//! | `oauth/` | a login to a server, and its tokens |
//! | `request` | a request to the server, and its answer |
//! | `elicitation/` | questions of a server to the user behind a call |
//! | `results` | a server's result as an answer |
//! | `roots` | which roots a server gets |
//! | `tools/` | tools: names, schemas, arguments |
//! | `context/` | resources and prompts |
//! | `subscriptions/` | who follows which resources, and what the server is told of it |

mod command;
mod config;
mod connect;
mod connect_error;
mod context;
mod elicitation;
mod http;
mod negotiate;
mod oauth;
mod request;
mod results;
mod roots;
mod run;
mod sampling;
mod server;
mod server_handle;
mod session;
mod subscriptions;
mod tools;

use std::process::ExitCode;

fn main() -> ExitCode {
    talon_bridge::logging::log_panics();
    run::run(std::env::args_os().skip(1))
}
