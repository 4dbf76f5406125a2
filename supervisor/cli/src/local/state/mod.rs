//! `talon state`: the plugins' stored state.

pub(crate) mod access;
mod delete;
mod get;
mod list;
pub(crate) mod name;
pub(crate) mod operator;
pub(crate) mod part;
mod private_service;
mod purge;
pub(crate) mod scratch;
mod set;

use clap::Subcommand;

use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;
use crate::runtime::block_on_pool;

/// Show and change the state that plugins store.
///
/// Works through the supervisor and needs the role admin. Without a supervisor the database is opened
/// directly, as its owner.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon state list
  talon state list notes --prefix draft/
  talon state get notes draft/1
  talon state purge notes

All of it, with sessions and memory, for other programs and for safety:
  talon export DIR
  talon backup FILE")]
pub(crate) enum StateVerb {
    List(list::ListArgs),
    Get(get::GetArgs),
    Set(set::SetArgs),
    Delete(delete::DeleteArgs),
    Purge(purge::PurgeArgs),
}

impl StateVerb {
    pub(crate) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        block_on_pool(async {
            match self {
                Self::List(args) => args.run(global, out).await,
                Self::Get(args) => args.run(global, out).await,
                Self::Set(args) => args.run(global, out).await,
                Self::Delete(args) => args.run(global, out).await,
                Self::Purge(args) => args.run(global, out).await,
            }
        })
    }
}
