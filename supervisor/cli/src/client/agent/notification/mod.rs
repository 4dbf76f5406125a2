//! `talon notification`: what people are told through `extensions.notifications`.

mod change;
mod list;

use clap::Subcommand;

use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// List what people are told, have it tried again, or send a test.
///
/// Which events go where is in the configuration, under extensions.notifications.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  talon notification list --state given_up
  talon notification retry --all
  talon notification test ops-mail")]
pub(crate) enum NotificationVerb {
    List(list::ListArgs),
    Retry(change::RetryArgs),
    Test(change::TestArgs),
}

impl NotificationVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
            Self::Retry(args) => args.run(socket, out).await,
            Self::Test(args) => args.run(socket, out).await,
        }
    }
}
