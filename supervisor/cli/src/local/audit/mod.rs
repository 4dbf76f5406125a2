//! `talon audit`: reads and verifies the audit log. Works without a supervisor.

mod find;
mod head;
mod show;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;
use crate::runtime::block_on;

/// Verify and read the audit log: who called what, and who did what to plugins.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon audit verify
  talon audit head >> /mnt/elsewhere/heads
  talon audit show --plugin jira --since 1h")]
pub(crate) enum AuditVerb {
    Verify(verify::VerifyArgs),
    Head(head::HeadArgs),
    Show(show::ShowArgs),
}

impl AuditVerb {
    pub(crate) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        block_on(async {
            match self {
                Self::Verify(args) => args.run(global, out).await,
                Self::Head(args) => args.run(global, out).await,
                Self::Show(args) => args.run(global, out).await,
            }
        })
    }
}
