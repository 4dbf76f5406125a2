//! `talon jail`: the jail without a plugin, for plugin authors.

pub(crate) mod command;
pub(crate) mod exit;
pub(crate) mod grants;
mod options;
mod profile_recorder;
mod profiles;
mod program;
pub(crate) mod relay;
mod report;
mod run;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::Output;

/// Run any command in the jail, and list the profiles.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon jail run -- ./my-plugin --selftest
  talon jail profiles")]
pub(crate) enum JailVerb {
    Run(Box<run::RunArgs>),
    Profiles(profiles::ProfilesArgs),
}

impl JailVerb {
    pub(crate) fn run(self, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::Run(args) => args.run(out),
            Self::Profiles(args) => args.run(out),
        }
    }
}
