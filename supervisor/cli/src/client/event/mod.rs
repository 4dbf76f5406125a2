//! `talon event`: what happens, as it happens and as it is kept.

mod list;
mod merge;
mod watch;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// List the events that are kept, or watch all of them.
///
/// What an operator wants to be told of is kept over restarts and has numbers: plugins that failed, configurations that were refused,
/// what plugins tell. Notifications are made of these. `talon event watch`, or short `talon events`, shows everything that happens.
#[derive(Debug, Subcommand)]
pub(crate) enum EventVerb {
    List(list::ListArgs),
    Watch(watch::WatchArgs),
}

impl EventVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
            Self::Watch(args) => args.run(socket, out).await,
        }
    }
}

/// Short for `talon event watch`: print events as they happen.
#[derive(Debug, Args)]
#[command(
    after_help = "The same as `talon event watch`, whose help has examples. `talon event list` shows events that are kept."
)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    watch: watch::WatchArgs,
}

impl EventsArgs {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        self.watch.run(socket, out).await
    }
}
