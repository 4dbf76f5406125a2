//! Offers the actions of a supervisor as an MCP server, on standard input and output, or over HTTP.
//!
//! It is an ordinary client of `host.sock`: the supervisor and its guard stack decide what it may call and
//! what comes back. So it has no privileges and no plugins, and parses an MCP host's input in a separate
//! process. `talon mcp` finds the socket and executes this program.
//!
//! ```text
//! MCP host ── stdin, stdout (JSON-RPC) ── server.rs ── call.rs, context/ ── host.sock: ExecuteStreaming
//!                                             ├─ catalog.rs ◄─ catalog_watcher.rs
//!                                             │                   ├─ host.sock: WatchEvents, ListPlugins, GetPlugin
//!                                             └─ subscriptions/ ◄─┘
//! ```

mod answer_meta;
mod arguments;
mod call;
mod call_progress;
mod catalog;
mod catalog_watcher;
mod context;
mod host;
mod http;
mod list_changes;
mod media;
mod notifications;
mod patterns;
mod private_supervisor;
mod question;
mod server;
mod structured;
mod subscriptions;
mod tool_page;
mod tools;
mod transport;

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::catalog_watcher::CatalogWatcher;
use crate::host::Host;
use crate::http::{HttpError, HttpSettings, Token, TokenError};
use crate::patterns::{Filter, Pattern};
use crate::private_supervisor::PrivateSupervisor;
use crate::server::Server;
use crate::structured::Structured;
use crate::subscriptions::{ClientSubscriptions, Subscriptions};
use crate::transport::Stdio;

/// The log filter's environment variable, as for all of Talon's programs.
const FILTER_VARIABLE: &str = "TALON_LOG";
/// The libraries log whole messages, including tool arguments, so they are limited to errors; our own level
/// is `info`.
const FILTER: &str = "h2=error,hyper=error,rmcp=error,info";

/// The token of HTTP clients.
const TOKEN_VARIABLE: &str = "TALON_MCP_TOKEN";

/// Offers the actions of a supervisor as an MCP server, on standard input and output. Started by `talon mcp`.
#[derive(Debug, Parser)]
#[command(name = "talon-mcp", version)]
struct Args {
    /// The supervisor's socket.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Offer only actions that match one of these patterns: plugin, plugin__action or plugin__prefix*.
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<Pattern>,
    /// Do not offer actions that match one of these patterns; overrides --allow.
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<Pattern>,
    /// Serve streamable HTTP there instead of standard input and output.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// A file with the token that HTTP clients send; made if it does not exist. Otherwise TALON_MCP_TOKEN.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// A host's name by which HTTP clients may ask for this server, besides those of loopback.
    #[arg(long, value_name = "NAME", requires = "http")]
    allowed_host: Vec<String>,
    /// What clients get as structured content, of tools with an output schema.
    #[arg(long, value_enum, default_value_t)]
    structured: Structured,
    /// The command that starts a supervisor on that socket if none answers; it exits at the end of its
    /// standard input.
    #[arg(last = true, value_name = "COMMAND")]
    own: Vec<OsString>,
}

fn main() -> ExitCode {
    talon_sanitize::print_panics_sanitized();
    let args = Args::parse();
    let filter = std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.is_empty());
    let filter = match EnvFilter::builder().parse(filter.as_deref().unwrap_or(FILTER)) {
        Ok(filter) => filter,
        Err(error) => {
            print_stderr(&format!(
                "{FILTER_VARIABLE} is not a log filter ({error}): write a level such as info"
            ));
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
            print_stderr(&format!("cannot start the runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(run(args));
    // A thread may still block in a read of standard input; do not wait for it.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            print_stderr(&why.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Prints one line to stderr; ignores errors, as there is nowhere to report them.
fn print_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "talon-mcp: {text}");
}

/// Why this program ends with an error.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("the MCP server ended unexpectedly: {0}; see the log above")]
    Server(#[source] tokio::task::JoinError),
    /// The client sent something else than MCP.
    #[error(
        "the input on standard input is no beginning of an MCP session ({0}): this program is for MCP hosts, such as editors"
    )]
    NotMcp(String),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(
        "clients over HTTP need a token: name a file with --token-file, which is made if it does not exist, or set \
         {TOKEN_VARIABLE}"
    )]
    NoToken,
    /// There is no supervisor, and there will be none.
    #[error("{0}")]
    NoSupervisor(String),
    #[error("the system has no random numbers ({0}): start it where /dev/urandom is there")]
    Random(getrandom::Error),
    #[error("following the supervisor failed: {0}; see the log above")]
    Watcher(#[source] tokio::task::JoinError),
}

async fn run(args: Args) -> Result<(), RunError> {
    let http = match args.http {
        Some(address) => Some(HttpSettings {
            address,
            allowed_hosts: args.allowed_host,
            token: token(args.token_file.as_deref())?,
        }),
        None => None,
    };
    let host = Host::new(args.socket);
    let subscriptions = Subscriptions::new(host.clone()).map_err(RunError::Random)?;
    let follower = CatalogWatcher::new(
        host.clone(),
        Filter::new(args.allow, args.deny),
        PrivateSupervisor::new(args.own),
        subscriptions.clone(),
    );
    let (catalog, list_changes) = (follower.catalog(), follower.list_changes());
    let mut following = tokio::spawn(follower.run());
    tokio::spawn(subscriptions.clone().keep());
    // Cancelled at the end of standard input, even while calls are in flight.
    let closing = CancellationToken::new();
    let serving = async {
        let clients = ClientSubscriptions::new(subscriptions.clone());
        let server = Server::new(host, args.structured, catalog, list_changes, clients, closing.clone());
        if let Some(http) = http {
            return match http::serve(http, server, closing).await {
                Ok(never) => match never {},
                Err(error) => Err(error.into()),
            };
        }
        let (input, output) = rmcp::transport::stdio_pipes();
        let served = server.serve(Stdio::new(input, output, closing)).await;
        match served {
            Ok(service) => match service.waiting().await {
                Ok(_) => Ok(()),
                Err(error) => Err(RunError::Server(error)),
            },
            // The client only probed whether the server starts.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(RunError::NotMcp(bounded(&error.to_string()))),
        }
    };
    let ended = tokio::select! {
        ended = serving => ended,
        gone = &mut following => match gone {
            Ok(why) => Err(RunError::NoSupervisor(why)),
            Err(error) => Err(RunError::Watcher(error)),
        },
    };
    subscriptions.close().await;
    ended
}

/// The token of HTTP clients: from the file, or else from the environment.
fn token(file: Option<&Path>) -> Result<Token, RunError> {
    if let Some(file) = file {
        return Ok(Token::from_file(file)?);
    }
    let text = std::env::var(TOKEN_VARIABLE).ok().filter(|text| !text.is_empty());
    Ok(Token::new(&text.ok_or(RunError::NoToken)?)?)
}

/// The most characters of a foreign text to print on standard error.
const MAX_QUOTED_CHARS: usize = 200;

fn bounded(text: &str) -> String {
    text.chars().take(MAX_QUOTED_CHARS).flat_map(char::escape_default).collect()
}
