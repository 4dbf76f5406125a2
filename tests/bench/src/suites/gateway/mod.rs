//! The gateway: chat completions beside LiteLLM in front of the same instant model, what it adds to `agent.sock`, what its process takes,
//! and how soon it is ready.

mod contenders;
mod half_load;
mod litellm;
mod memory;
mod rates;
mod ready;
pub(super) mod system;

use anyhow::Result;

use super::Bench;
use system::System;

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    bench.progress.set_message("starting the gateway and its rivals");
    if !bench.plan.loaded {
        ready::run(bench).await?;
    }
    let system = System::start().await?;
    if !bench.plan.loaded {
        memory::idle(bench, &system).await?;
    }
    let rate = rates::run(bench, &system).await?;
    if !bench.plan.loaded {
        half_load::run(bench, &system, rate / 2.0)?;
        memory::with_streams(bench, &system).await?;
    }
    Ok(())
}
