//! `talon memory`: what the agent remembers across sessions.

mod forget;
mod list;
mod show;

use clap::Subcommand;

use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// List, search, show and delete the agent's memories.
///
/// Memories are saved facts and preferences, and workflows: successful turns with several tool calls.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon memory list
  talon memory search invoice
  talon memory forget 01K0")]
pub(crate) enum MemoryVerb {
    List(list::ListArgs),
    Search(list::SearchArgs),
    Show(show::ShowArgs),
    Forget(forget::ForgetArgs),
}

impl MemoryVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
            Self::Search(args) => args.run(socket, out).await,
            Self::Show(args) => args.run(socket, out).await,
            Self::Forget(args) => args.run(socket, out).await,
        }
    }
}
