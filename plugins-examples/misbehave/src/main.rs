//! A plugin that misbehaves. Without arguments it is a well-behaved go-plugin plugin; `--lie` makes it fail
//! during its start, and its actions make it fail while it serves. It does not use the SDK on purpose: the
//! SDK would prevent most of these faults.

mod actions;
mod capabilities;
mod deferred;
mod events;
mod fault_kinds;
mod faults;
mod flood;
mod handshake;
mod headers;
mod hostile;
mod model;
mod options;
mod reply;
mod serve;
mod shared;
mod state;
mod storage;

use clap::Parser;

use options::Options;

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
            Some(flood) if !options.flood_on_call && !options.flood_on_stdio => {
                flood::serve(listener, flood).await
            }
            _ => serve::serve(listener, options).await,
        },
        None => std::future::pending().await,
    }
}
