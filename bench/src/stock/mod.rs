//! What Talon is held against: sockets and tonic as they come, on one thread each, with the system's allocator. One thread,
//! because measured that is tonic's fastest layout where a core is all it gets.

mod bare;
mod mcp;
mod pipe;
mod raw;
mod relay;
mod spawner;
pub mod sqlite;
mod state;

use std::path::{Path, PathBuf};

use anyhow::Result;

/// What one process of these does.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Part {
    /// Answers frames on a socket.
    RawServer {
        /// Where.
        socket: PathBuf,
    },
    /// Makes loads of frames.
    RawDriver {
        /// Where the server is.
        socket: PathBuf,
    },
    /// Answers `PluginService.Execute` and nothing else.
    BareServer {
        /// Where.
        socket: PathBuf,
    },
    /// Makes loads of calls on one connection.
    BareDriver {
        /// Where the server is.
        socket: PathBuf,
    },
    /// Starts a plugin many times, and makes loads of calls of one that is drawn.
    Spawner {
        /// Its program.
        plugin: PathBuf,
        /// Where their sockets go; whoever started us removes it.
        sockets: PathBuf,
        /// How many.
        count: usize,
    },
    /// Reads or writes a database.
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What is done.
        what: state::What,
    },
    /// Reads or writes a plugin's state through its socket.
    State {
        /// The socket.
        socket: PathBuf,
        /// What is done.
        what: state::What,
    },
    /// Makes loads of calls of an MCP server's tool over its standard input and output.
    Mcp {
        /// The tool.
        tool: String,
        /// What the tool takes.
        takes: mcp::Takes,
        /// The server.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Reads lines from a pipe and throws them away.
    PipeReader,
    /// Writes so many lines to standard error for each number that comes on standard input.
    PipeWriter,
    /// Answers `PluginService.Execute` with what another server answers.
    Relay {
        /// Where.
        socket: PathBuf,
        /// Where the other server is.
        to: PathBuf,
    },
}

impl Part {
    /// Does it, on one thread, until it is killed or has nothing more to do.
    ///
    /// # Errors
    /// What went wrong.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self {
                Self::RawServer { socket } => raw::serve(&socket).await,
                Self::RawDriver { socket } => crate::worker::serve(raw::Frames::to(socket)).await,
                Self::BareServer { socket } => bare::serve(&socket, bare::Says::default()).await,
                Self::BareDriver { socket } => crate::worker::serve(bare::Calls::to(&socket).await?).await,
                Self::Spawner { plugin, sockets, count } => {
                    crate::worker::serve(spawner::Many::start(plugin, sockets, count).await?).await
                }
                Self::Sqlite { path, what } => {
                    crate::worker::serve(state::Database::open(&path, what)?).await
                }
                Self::State { socket, what } => {
                    crate::worker::serve(state::Kept::to(&socket, what).await?).await
                }
                Self::Mcp { tool, takes, command } => {
                    crate::worker::serve(mcp::Session::start(&command, tool, takes).await?).await
                }
                Self::PipeReader => crate::worker::serve(pipe::Reader::start()?).await,
                Self::PipeWriter => pipe::write(),
                Self::Relay { socket, to } => bare::serve(&socket, relay::Onward::to(&to).await?).await,
            }
        })
    }
}

/// A listening socket, of which the parent is told.
fn listen(socket: &Path) -> Result<tokio::net::UnixListener> {
    let listener = tokio::net::UnixListener::bind(socket)?;
    crate::worker::ready()?;
    Ok(listener)
}
