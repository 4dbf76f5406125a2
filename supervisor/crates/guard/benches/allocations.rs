//! How often a call through the guard stack asks the allocator for memory, and for how many bytes: the cases
//! of `stack`.
//!
//! Allocations are exact, so one machine's figures are every machine's. A case's own figures are those beyond
//! the case that it stands over. `cargo bench -p talon-guard --bench allocations` prints a table, and with
//! `-- --json` one line of JSON for each row:
//!
//! ```json
//! {"group":"whole","name":"prose","over":"a call","allocations":12,"bytes":4711}
//! ```

use std::collections::HashMap;

use allocation_counter::{AllocationInfo, measure};

#[path = "stack/fixture.rs"]
mod fixture;

use fixture::{Case, KIB};

/// So many calls go first: tables, buffers and thread-locals are made once and are no cost of a call.
const WARM_UP: usize = 100;

/// So many calls are counted. They have to be alike.
const COUNTED: u64 = 100;

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    if !json {
        println!("{:<8} {:<28} {:<14} {:>11} {:>8}", "group", "name", "over", "allocations", "bytes");
    }
    for cases in [fixture::wholes(KIB), fixture::layers(KIB), fixture::parts(KIB)] {
        table(cases, json);
    }
}

/// One list of cases, each less what it stands over.
fn table(mut cases: Vec<Case>, json: bool) {
    let all: HashMap<&str, AllocationInfo> = cases.iter_mut().map(|case| (case.name, count(case))).collect();
    for Case { group, name, over, .. } in cases {
        let base = all.get(over).copied().unwrap_or_default();
        let own =
            |of: fn(&AllocationInfo) -> u64| (of(&all[name]) as f64 - of(&base) as f64) / COUNTED as f64;
        let (allocations, bytes) = (own(|info| info.count_total), own(|info| info.bytes_total));
        if json {
            println!(
                r#"{{"group":"{group}","name":"{name}","over":"{over}","allocations":{allocations},"bytes":{bytes}}}"#
            );
        } else {
            println!("{group:<8} {name:<28} {over:<14} {allocations:>11} {bytes:>8}");
        }
    }
}

fn count(case: &mut Case) -> AllocationInfo {
    for _ in 0..WARM_UP {
        case.once();
    }
    measure(|| {
        for _ in 0..COUNTED {
            case.once();
        }
    })
}
