//! `talon approval`: calls that wait for an approval.

mod decide;
pub(super) mod find;
mod list;
mod show;

use clap::Subcommand;

use super::super::Global;
use super::super::failure::Failure;
use super::super::output::Output;

/// List, show and decide calls that wait for an approval.
///
/// `agent.confirm` in the configuration says which calls need one. A call without a decision expires and does not run.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon approval list
  talon approval approve 01K0
  talon approval deny 01K0 --reason 'use the trash instead'")]
pub(in crate::cli) enum ApprovalVerb {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Approve(decide::ApproveArgs),
    Deny(decide::DenyArgs),
}

impl ApprovalVerb {
    pub(in crate::cli) async fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(global, out).await,
            Self::Show(args) => args.run(global, out).await,
            Self::Approve(args) => args.run(global, out).await,
            Self::Deny(args) => args.run(global, out).await,
        }
    }
}
