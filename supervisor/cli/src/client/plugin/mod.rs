//! `talon plugin`: lists, inspects and operates plugins.

mod approve;
mod list;
mod logs;
mod operate;
mod refused;
pub(crate) mod show;

use clap::Subcommand;

use crate::failure::Failure;
use crate::host_socket::HostSocket;
use crate::output::Output;

/// List, inspect and operate plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginVerb {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Start(operate::StartArgs),
    Stop(operate::StopArgs),
    Restart(operate::RestartArgs),
    Reload(operate::ReloadArgs),
    Refresh(operate::RefreshArgs),
    Approve(approve::ApproveArgs),
    Logs(logs::LogsArgs),
}

impl PluginVerb {
    pub(crate) async fn run(self, socket: &HostSocket<'_>, out: &mut Output) -> Result<u8, Failure> {
        match self {
            Self::List(args) => args.run(socket, out).await,
            Self::Show(args) => args.run(socket, out).await,
            Self::Start(args) => args.run(socket, out).await,
            Self::Stop(args) => args.run(socket, out).await,
            Self::Restart(args) => args.run(socket, out).await,
            Self::Reload(args) => args.run(socket, out).await,
            Self::Refresh(args) => args.run(socket, out).await,
            Self::Approve(args) => args.run(socket, out).await,
            Self::Logs(args) => args.run(socket, out).await,
        }
    }
}
