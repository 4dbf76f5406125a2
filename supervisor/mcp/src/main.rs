//! Offers the actions of a supervisor as an MCP server, on standard input and output.
//!
//! It is a client of `host.sock` like every other: what it may call, and what comes back, is decided there, by the same
//! guard stack. So it has no privilege and no plugin, and reads what an MCP host writes in a process of its own.
//! `talon mcp` finds the socket and executes this program.
//!
//! ```text
//! MCP host ── stdin, stdout (JSON-RPC) ── server.rs ── call.rs ────────── host.sock: ExecuteStreaming
//!                                             └─ catalog.rs ◄─ follow.rs ─ host.sock: WatchEvents, ListPlugins, GetPlugin
//! ```

mod arguments;
mod call;
mod catalog;
mod follow;
mod host;
mod own;
mod patterns;
mod server;
mod tools;
mod transport;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::follow::Follower;
use crate::host::Host;
use crate::own::Own;
use crate::patterns::{Filter, Pattern};
use crate::server::Server;
use crate::transport::Stdio;

/// Says what is logged, as for every program of ours.
const FILTER_VARIABLE: &str = "TALON_LOG";
/// The libraries log whole messages, which hold what tools were asked; ours is said at `info`.
const FILTER: &str = "h2=error,hyper=error,rmcp=error,info";

/// Offers the actions of a supervisor as an MCP server, on standard input and output. Started by `talon mcp`.
#[derive(Debug, Parser)]
#[command(name = "talon-mcp", version)]
struct Args {
    /// The supervisor's socket.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Offer only what one of these names: plugin, plugin__action or plugin__prefix*.
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<Pattern>,
    /// Offer nothing that one of these names; it wins over --allow.
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<Pattern>,
    /// How to start a supervisor on that socket when nobody answers there: one that ends with its standard input.
    #[arg(last = true, value_name = "COMMAND")]
    own: Vec<OsString>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let filter = std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.is_empty());
    let filter = match EnvFilter::builder().parse(filter.as_deref().unwrap_or(FILTER)) {
        Ok(filter) => filter,
        Err(error) => {
            say(&format!("{FILTER_VARIABLE} is not a log filter ({error}): write a level such as info"));
            return ExitCode::from(2);
        }
    };
    // Standard output belongs to the protocol.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .log_internal_errors(false)
        .init();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("cannot start the runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(run(args));
    // Standard input may be read by a thread that only its end wakes; nothing is left to wait for.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::FAILURE
        }
    }
}

/// One line to whoever started this program; if nobody hears it, there is nobody to tell.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "talon-mcp: {text}");
}

async fn run(args: Args) -> Result<(), String> {
    let host = Host::new(args.socket);
    let follower = Follower::new(host.clone(), Filter::new(args.allow, args.deny), Own::new(args.own));
    let catalog = follower.catalog();
    let mut following = tokio::spawn(follower.run());
    // Ends with standard input, before the calls that are still under way: nothing waits for more to come.
    let closing = CancellationToken::new();
    let (input, output) = rmcp::transport::stdio_pipes();
    let transport = Stdio::new(input, output, closing.clone());
    let serving = async {
        let served = Server::new(host, catalog, closing).serve(transport).await;
        match served {
            Ok(service) => match service.waiting().await {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("the MCP server ended by itself: {error}; see the log above")),
            },
            // A client that only looked whether we start.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(format!(
                "what came on standard input is no beginning of an MCP session ({}): this program is for MCP hosts, \
                 such as editors",
                bounded(&error.to_string())
            )),
        }
    };
    tokio::select! {
        ended = serving => ended,
        gone = &mut following => match gone {
            Ok(why) => Err(why),
            Err(error) => Err(format!("following the supervisor failed: {error}")),
        },
    }
}

/// The most of a foreign text that is told on standard error.
const MAX_TOLD_CHARS: usize = 200;

fn bounded(text: &str) -> String {
    text.chars().take(MAX_TOLD_CHARS).flat_map(char::escape_default).collect()
}
