//! Counts the guard's allocations. A separate program, because it needs a counting allocator, under which
//! times are meaningless.

use talon_bench::{layers, turns};
use tokio::task::unconstrained;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let count = |run: &mut dyn FnMut()| {
            let counted = allocation_counter::measure(run);
            (counted.count_total, counted.bytes_total)
        };
        let turn =
            async || Ok(layers::layer_tables().iter_mut().flat_map(|sheet| sheet.counted(count)).collect());
        // As in the timed run: hundreds of calls are one poll of this task.
        unconstrained(turns::serve_turns(turn)).await
    })
}
