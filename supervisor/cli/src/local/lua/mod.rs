//! `talon lua`: the tools for authors of scripts, in the jail that scripts run in.

mod check;
mod library;
mod repl;
mod run;
mod session;
mod test;
mod tool;

use clap::Subcommand;

use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;

/// Check, run and test Lua scripts, in the jail that they run in.
///
/// `talon-lua` does the work, as it does for `plugins.lua`: in a jail that sees the scripts, read-only, and no network. No
/// supervisor has to run. Scripts in `plugins.lua.scripts_dir` of the configuration have the limits and libraries that it says;
/// others have those of scripts by default: 64 MB, and 5 s a call.
///
/// Exits with 1 if a script or a test fails, 125 if the jail could not be built, 127 if talon-lua is not installed.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon new lua urgent
  talon lua check
  talon lua test ./scripts
  talon lua run ./scripts/filter.lua filter --message 'buy spam'
  talon lua repl")]
pub(crate) enum LuaVerb {
    Check(check::CheckArgs),
    Run(Box<run::RunArgs>),
    Test(test::TestArgs),
    Repl(repl::ReplArgs),
}

impl LuaVerb {
    pub(crate) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::Check(args) => args.run(global, out),
            Self::Run(args) => args.run(global, out),
            Self::Test(args) => args.run(global, out),
            Self::Repl(args) => args.run(global, out),
        }
    }
}
