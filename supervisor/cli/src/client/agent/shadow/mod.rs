//! `talon shadow`: what the shadow loop proposes, and what was decided about it.

mod change;
mod decide;
mod list;
mod log;
mod show;
mod stats;
mod stream;

use clap::Subcommand;

use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// List, show and decide about ghosts: proposals that come of watching your work.
///
/// Nothing acts before you approve it. What is watched is in your own ~/.config/talon/watch.yaml (`talon watch`); limits and
/// the model are in the configuration, under shadow.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon shadow list
  talon shadow why 01K0
  talon shadow approve 01K0
  talon shadow pause --for 2h")]
pub(crate) enum ShadowVerb {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Why(show::WhyArgs),
    Approve(decide::ApproveArgs),
    Dismiss(decide::DismissArgs),
    Snooze(decide::SnoozeArgs),
    Pause(change::PauseArgs),
    Resume(change::ResumeArgs),
    Stats(stats::StatsArgs),
    Log(log::LogArgs),
    Follow(stream::FollowArgs),
}

impl ShadowVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
            Self::Show(args) => args.run(socket, out).await,
            Self::Why(args) => args.run(socket, out).await,
            Self::Approve(args) => args.run(socket, out).await,
            Self::Dismiss(args) => args.run(socket, out).await,
            Self::Snooze(args) => args.run(socket, out).await,
            Self::Pause(args) => args.run(socket, out).await,
            Self::Resume(args) => args.run(socket, out).await,
            Self::Stats(args) => args.run(socket, out).await,
            Self::Log(args) => args.run(socket, out).await,
            Self::Follow(args) => args.run(socket, out).await,
        }
    }
}
