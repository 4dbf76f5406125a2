//! `talon session`: stored conversations.

pub(super) mod compact;
mod delete;
pub(super) mod list;
mod plan;
mod resume;
mod set;
pub(super) mod show;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// List, show and manage sessions.
///
/// A session is a conversation with the agent. It is stored until it is deleted, including the turns that a
/// summary replaced.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon session list
  talon session show 01K0 --all
  talon session verify 01K0
  talon chat --session 01K0")]
pub(crate) enum SessionVerb {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Verify(verify::VerifyArgs),
    Resume(resume::ResumeArgs),
    Set(set::SetArgs),
    Plan(plan::PlanArgs),
    Compact(compact::CompactArgs),
    Delete(delete::DeleteArgs),
}

impl SessionVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
            Self::Show(args) => args.run(socket, out).await,
            Self::Verify(args) => args.run(socket, out).await,
            Self::Resume(args) => args.run(socket, out).await,
            Self::Set(args) => args.run(socket, out).await,
            Self::Plan(args) => args.run(socket, out).await,
            Self::Compact(args) => args.run(socket, out).await,
            Self::Delete(args) => args.run(socket, out).await,
        }
    }
}
