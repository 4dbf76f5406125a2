//! The command line: which faults this process has.

use clap::{Parser, ValueEnum};
use talon_proto::plugin::JobProposal;

use crate::events::EventFault;
use crate::fault_kinds::{Fault, Hostile, StartFault};
use crate::flood::Flood;

/// A plugin with every fault that the fault tests need.
#[derive(Debug, Clone, Parser)]
pub(crate) struct Options {
    /// What goes wrong during the start.
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) lie: StartFault,
    /// Which handshake it uses.
    #[arg(long, value_enum, default_value = "go-plugin")]
    pub(crate) dialect: Dialect,
    /// The name it declares for itself.
    #[arg(long, default_value = "misbehave")]
    pub(crate) name: String,
    /// A file of the test, for faults that need a second path (a socket elsewhere, a link's target).
    #[arg(long)]
    pub(crate) path: Option<std::path::PathBuf>,
    /// Sends these frames for ever instead of answers.
    #[arg(long, value_enum)]
    pub(crate) flood: Option<Flood>,
    /// The flood begins with the first call; until then it serves.
    #[arg(long, requires = "flood")]
    pub(crate) flood_on_call: bool,
    /// The flood begins when the host opens go-plugin's output stream; until then it serves.
    #[arg(long, requires = "flood", conflicts_with = "flood_on_call")]
    pub(crate) flood_on_stdio: bool,
    /// Where a text appears that attacks the terminal, the page or the model of its reader.
    #[arg(long, value_enum)]
    pub(crate) hostile: Option<Hostile>,
    /// What goes wrong in every call.
    #[arg(long, value_enum)]
    pub(crate) wrong: Option<Fault>,
    /// Tells events, and what is wrong with them.
    #[arg(long, value_enum)]
    pub(crate) events: Option<EventFault>,
    /// Proposes a job for its action `task`, as NAME:EVERY or as NAME:EVERY:ARGUMENTS, the arguments as JSON.
    #[arg(long = "propose", value_parser = proposal)]
    pub(crate) proposals: Vec<JobProposal>,
    /// Proposes so many more jobs.
    #[arg(long, default_value_t = 0)]
    pub(crate) propose_many: u32,
    /// Survives SIGTERM and SIGINT.
    #[arg(long)]
    pub(crate) ignore_signals: bool,
    /// Offers no grpc.health.v1.
    #[arg(long)]
    pub(crate) no_health: bool,
    /// Offers neither Init nor RefreshCapabilities nor GRPCController, as the smallest plugins do.
    #[arg(long)]
    pub(crate) minimal: bool,
    /// Works on one call at a time, like a single-threaded program: health waits too.
    #[arg(long)]
    pub(crate) single_threaded: bool,
}

fn proposal(text: &str) -> Result<JobProposal, String> {
    let mut parts = text.splitn(3, ':').map(str::to_owned);
    let (Some(name), Some(every)) = (parts.next(), parts.next()) else {
        return Err("write NAME:EVERY or NAME:EVERY:ARGUMENTS".to_owned());
    };
    Ok(JobProposal {
        name,
        every,
        arguments_json: parts.next().unwrap_or_default(),
        ..JobProposal::default()
    })
}

/// The two handshake dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// `1|APP|unix|ADDR|grpc`
    GoPlugin,
    /// `1|unix|ADDR`
    Opentalon,
}
