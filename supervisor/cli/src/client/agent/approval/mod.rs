//! `talon approval`: calls that wait for an approval.

mod decide;
pub(super) mod find;
mod list;
mod rules;
pub(super) mod scope;
mod show;

use clap::Subcommand;

use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// List, show and decide calls that wait for an approval, and answer questions of the model.
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
    Answer(decide::AnswerArgs),
    Rules(rules::RulesArgs),
    Revoke(rules::RevokeArgs),
}

impl ApprovalVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
            Self::Show(args) => args.run(socket, out).await,
            Self::Approve(args) => args.run(socket, out).await,
            Self::Deny(args) => args.run(socket, out).await,
            Self::Answer(args) => args.run(socket, out).await,
            Self::Rules(args) => args.run(socket, out).await,
            Self::Revoke(args) => args.run(socket, out).await,
        }
    }
}
