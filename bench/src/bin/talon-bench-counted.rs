//! What the guard asks the allocator for. A program of its own, because counting takes an allocator of its own, under which
//! times say nothing.

use talon_bench::{layers, turns};
use tokio::task::unconstrained;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let count = |run: &mut dyn FnMut()| {
            let counted = allocation_counter::measure(run);
            (counted.count_total, counted.bytes_total)
        };
        let turn = async || Ok(layers::sheets().iter_mut().flat_map(|sheet| sheet.counted(count)).collect());
        // As where it is timed: hundreds of calls are one poll of this task.
        unconstrained(turns::take(turn)).await
    })
}
