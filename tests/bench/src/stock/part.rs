//! The roles of `talon-bench-stock`, one a process.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use super::agent_socket::AgentCompletions;
use super::completions::{Completions, Question};
use super::{bare, flood, mcp, model, pipe, raw, relay, spawner, state};
use crate::neighbours;
use crate::paced::{self, Pace};

/// The role of one process.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Part {
    /// Answers frames on a socket.
    RawServer {
        /// Where.
        socket: PathBuf,
    },
    /// Runs loads of frames.
    RawDriver {
        /// Where the server is.
        socket: PathBuf,
    },
    /// Answers `PluginService.Execute` and nothing else.
    BareServer {
        /// Where.
        socket: PathBuf,
    },
    /// Runs loads of calls on one connection.
    BareDriver {
        /// Where the server is.
        socket: PathBuf,
    },
    /// Starts a plugin many times, and runs loads of calls to random ones of them.
    Spawner {
        /// Its program.
        plugin: PathBuf,
        /// The directory for their sockets; our parent removes it.
        sockets: PathBuf,
        /// How many.
        count: usize,
    },
    /// Reads or writes a database.
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The operation.
        what: state::Operation,
    },
    /// Reads or writes a plugin's state through its socket.
    State {
        /// The socket.
        socket: PathBuf,
        /// The operation.
        what: state::Operation,
    },
    /// Runs loads of calls to an MCP server's tool over its standard input and output.
    Mcp {
        /// The tool.
        tool: String,
        /// The argument of the tool.
        takes: mcp::ArgumentKind,
        /// The server.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Reads lines from a pipe and discards them.
    PipeReader,
    /// Writes lines to standard error, as many as each number on standard input says.
    PipeWriter,
    /// Burns CPU until standard input ends: a busy neighbour.
    Burn,
    /// Floods a supervisor with control frames, six kinds at once, until standard input ends.
    Flood {
        /// Its socket.
        socket: PathBuf,
    },
    /// Answers chat completions at once.
    Model,
    /// Runs loads of chat completions, or of turns that are stored.
    Completions {
        /// Where.
        address: SocketAddr,
        /// The bearer token.
        token: String,
        /// How it is asked.
        question: Question,
    },
    /// The same at planned times, in turns.
    PacedCompletions {
        /// Where.
        address: SocketAddr,
        /// The bearer token.
        token: String,
        /// The case of its figures.
        case: String,
        /// The name of what answers.
        contender: String,
        /// How often.
        #[command(flatten)]
        pace: Pace,
    },
    /// Runs loads of chat completions through an agent's socket.
    AgentCompletions {
        /// The socket.
        socket: PathBuf,
    },
    /// The same at planned times, in turns.
    PacedAgentCompletions {
        /// The socket.
        socket: PathBuf,
        /// The case of its figures.
        case: String,
        /// The name of what answers.
        contender: String,
        /// How often.
        #[command(flatten)]
        pace: Pace,
    },
    /// Answers `PluginService.Execute` by forwarding it to another server.
    Relay {
        /// Where.
        socket: PathBuf,
        /// Where the other server is.
        to: PathBuf,
    },
}

impl Part {
    /// Runs it, on one thread, until it is killed or its work is done.
    ///
    /// # Errors
    /// Why it failed.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self {
                Self::RawServer { socket } => raw::serve(&socket).await,
                Self::RawDriver { socket } => crate::worker::serve(raw::Frames::to(socket)).await,
                Self::BareServer { socket } => bare::serve(&socket, bare::TextHandler::default()).await,
                Self::BareDriver { socket } => {
                    crate::worker::serve(bare::BareCaller::to(&socket).await?).await
                }
                Self::Spawner { plugin, sockets, count } => {
                    crate::worker::serve(spawner::SpawnedPlugins::start(plugin, sockets, count).await?).await
                }
                Self::Sqlite { path, what } => {
                    crate::worker::serve(state::Database::open(&path, what)?).await
                }
                Self::State { socket, what } => {
                    crate::worker::serve(state::StateCaller::to(&socket, what).await?).await
                }
                Self::Mcp { tool, takes, command } => {
                    crate::worker::serve(mcp::Session::start(&command, tool, takes).await?).await
                }
                Self::PipeReader => crate::worker::serve(pipe::Reader::start()?).await,
                Self::PipeWriter => pipe::write(),
                Self::Burn => neighbours::burn(),
                Self::Flood { socket } => flood::run(&socket),
                Self::Model => model::serve().await,
                Self::Completions { address, token, question } => {
                    crate::worker::serve(Completions::new(address, &token, question)).await
                }
                Self::PacedCompletions { address, token, case, contender, pace } => {
                    let caller = Completions::new(address, &token, Question::Whole);
                    paced::serve(caller, &case, &contender, pace).await
                }
                Self::AgentCompletions { socket } => {
                    crate::worker::serve(AgentCompletions::to(&socket).await?).await
                }
                Self::PacedAgentCompletions { socket, case, contender, pace } => {
                    paced::serve(AgentCompletions::to(&socket).await?, &case, &contender, pace).await
                }
                Self::Relay { socket, to } => bare::serve(&socket, relay::Relay::to(&to).await?).await,
            }
        })
    }
}
