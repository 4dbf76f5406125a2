//! `talon memory`: what the agent remembers across sessions.

mod forget;
mod list;
mod show;

use clap::Subcommand;

use crate::failure::Failure;
use crate::global::Global;
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
    pub(crate) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(global, out).await,
            Self::Search(args) => args.run(global, out).await,
            Self::Show(args) => args.run(global, out).await,
            Self::Forget(args) => args.run(global, out).await,
        }
    }
}
