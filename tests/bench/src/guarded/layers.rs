//! The time that the guard adds to a call.

use anyhow::Result;
use tokio::task::unconstrained;

use crate::{layers, turns};

pub(super) async fn serve(sheets: fn() -> Vec<layers::LayerTable>) -> Result<()> {
    let turn = async || {
        // Built for each turn, because their call has a deadline of half a minute.
        let mut sheets = sheets();
        Ok(sheets.iter_mut().flat_map(layers::LayerTable::timed).collect())
    };
    // Thousands of calls are one poll of this task, and tokio would otherwise make such a task yield.
    unconstrained(turns::serve_turns(turn)).await
}
