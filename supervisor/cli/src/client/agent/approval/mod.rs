//! `talon approval`: calls that wait for an approval.

mod decide;
pub(super) mod find;
mod list;
mod show;

use clap::Subcommand;

use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// List, show and decide calls that wait for an approval.
///
/// `agent.confirm` in the configuration says which calls need one. A call without a decision expires and does
/// not run.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon approval list
  talon approval approve 01K0
  talon approval deny 01K0 --reason 'use the trash instead'")]
pub(crate) enum ApprovalVerb {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Approve(decide::ApproveArgs),
    Deny(decide::DenyArgs),
}

impl ApprovalVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
            Self::Show(args) => args.run(socket, out).await,
            Self::Approve(args) => args.run(socket, out).await,
            Self::Deny(args) => args.run(socket, out).await,
        }
    }
}
