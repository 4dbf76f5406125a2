//! `talon schedule`: jobs that run at planned times. `check` works without a supervisor; the others ask its
//! agent.

use clap::Subcommand;

use crate::client::agent::{
    AcceptArgs, HistoryArgs, NextArgs, PauseArgs, RejectArgs, ResumeArgs, RunArgs, ScheduleListArgs,
};
use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::local::schedule_check::CheckArgs;
use crate::output::Output;
use crate::runtime::block_on;

/// Look at jobs that run at planned times, run one now, or let it rest.
///
/// The jobs are in the configuration, under extensions.schedule. Plugins may propose others, which run once they are accepted.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon schedule check '0 9 * * 1-5' --timezone Europe/Berlin
  talon schedule list
  talon schedule run digest
  talon schedule accept files.tidy
  talon schedule history digest")]
pub(crate) enum ScheduleVerb {
    Check(CheckArgs),
    List(ScheduleListArgs),
    Next(NextArgs),
    Run(RunArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Accept(AcceptArgs),
    Reject(RejectArgs),
    History(HistoryArgs),
}

impl ScheduleVerb {
    pub(crate) fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::Check(args) => args.run(out),
            Self::List(args) => block_on(args.run(socket, out)),
            Self::Next(args) => block_on(args.run(socket, out)),
            Self::Run(args) => block_on(args.run(socket, out)),
            Self::Pause(args) => block_on(args.run(socket, out)),
            Self::Resume(args) => block_on(args.run(socket, out)),
            Self::Accept(args) => block_on(args.run(socket, out)),
            Self::Reject(args) => block_on(args.run(socket, out)),
            Self::History(args) => block_on(args.run(socket, out)),
        }
    }
}
