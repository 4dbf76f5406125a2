//! What the guard takes of a call, by the clock.

use anyhow::Result;
use tokio::task::unconstrained;

use crate::{layers, turns};

pub(super) async fn serve(sheets: fn() -> Vec<layers::Sheet>) -> Result<()> {
    let turn = async || {
        // Made anew each time: the call in them ends at its deadline, half a minute after it was made.
        let mut sheets = sheets();
        Ok(sheets.iter_mut().flat_map(layers::Sheet::timed).collect())
    };
    // Thousands of calls are one poll of this task, and tokio has tasks that poll so much wait for others' turns.
    unconstrained(turns::take(turn)).await
}
