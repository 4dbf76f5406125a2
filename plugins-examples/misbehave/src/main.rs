//! A plugin that misbehaves. Without arguments it is a well-behaved go-plugin plugin; `--lie` makes it fail during
//! its start, and its actions make it fail while it serves. It does not use the SDK on purpose: the SDK would prevent
//! most of these faults.

mod actions;
mod deferred;
mod faults;
mod flood;
mod handshake;
mod hostile;
mod reply;
mod serve;
mod state;

use clap::{Parser, ValueEnum};

use handshake::StartFault;

/// A plugin with every fault that the fault tests need.
#[derive(Debug, Clone, Parser)]
struct Options {
    /// What goes wrong during the start.
    #[arg(long, value_enum, default_value = "none")]
    lie: StartFault,
    /// Which handshake it uses.
    #[arg(long, value_enum, default_value = "go-plugin")]
    dialect: Dialect,
    /// The name it declares for itself.
    #[arg(long, default_value = "misbehave")]
    name: String,
    /// A file of the test, for faults that need a second path (a socket elsewhere, a link's target).
    #[arg(long)]
    path: Option<std::path::PathBuf>,
    /// Sends these frames for ever instead of answers.
    #[arg(long, value_enum)]
    flood: Option<flood::Flood>,
    /// Where a text appears that attacks the terminal, the page or the model of its reader.
    #[arg(long, value_enum)]
    hostile: Option<hostile::Hostile>,
    /// What goes wrong in every call.
    #[arg(long, value_enum)]
    wrong: Option<faults::Fault>,
    /// Survives SIGTERM and SIGINT.
    #[arg(long)]
    ignore_signals: bool,
    /// Offers no grpc.health.v1.
    #[arg(long)]
    no_health: bool,
    /// Offers neither Init nor RefreshCapabilities nor GRPCController, as the smallest plugins do.
    #[arg(long)]
    minimal: bool,
    /// Works on one call at a time, like a single-threaded program: health waits too.
    #[arg(long)]
    single_threaded: bool,
}

/// The two handshake dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Dialect {
    /// `1|APP|unix|ADDR|grpc`
    GoPlugin,
    /// `1|unix|ADDR`
    Opentalon,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(options))
}

async fn run(options: Options) -> anyhow::Result<()> {
    if options.ignore_signals {
        for kind in
            [tokio::signal::unix::SignalKind::terminate(), tokio::signal::unix::SignalKind::interrupt()]
        {
            let mut signals = tokio::signal::unix::signal(kind)?;
            tokio::spawn(async move { while signals.recv().await.is_some() {} });
        }
    }
    if !hostile::print_before_handshake(&options)? {
        return std::future::pending().await;
    }
    match handshake::run(&options).await? {
        Some(listener) => match options.flood {
            Some(flood) => flood::serve(listener, flood).await,
            None => serve::serve(listener, options).await,
        },
        None => std::future::pending().await,
    }
}
