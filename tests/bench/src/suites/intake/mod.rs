//! Everything besides calls: plugins' state, MCP on both sides, events to listeners, the plugins' logs. One
//! supervisor serves all of it.

mod events;
mod log;
mod mcp;
mod served;
mod state;

use anyhow::Result;

use super::Bench;
use served::{PYTHON, Served};

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.progress.set_message("starting the contenders of intake");
    let served = Served::start().await;
    state::run(bench, &served).await?;
    if served.has_server {
        mcp::inwards(bench, &served)?;
    } else {
        bench.book.note(format!("MCP in: there is no {PYTHON} to run a server with"));
    }
    mcp::outwards(bench, &served)?;
    events::run(bench, &served)?;
    log::run(bench, &served)
}
