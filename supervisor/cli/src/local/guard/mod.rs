//! `talon guard`: uses the guard without a supervisor, and shows answers from before the guard.

mod check;
mod raw;

use clap::Subcommand;

use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;
use crate::runtime::block_on;

/// Run the guard on a text without a supervisor, or show answers as plugins sent them.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  curl -s https://example.org | talon guard check > page.txt
  talon guard raw")]
pub(crate) enum GuardVerb {
    Check(check::CheckArgs),
    Raw(raw::RawArgs),
}

impl GuardVerb {
    pub(crate) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::Check(args) => args.run(out),
            Self::Raw(args) => block_on(args.run(global, out)),
        }
    }
}
