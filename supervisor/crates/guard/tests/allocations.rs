//! How often a clean call asks the allocator for memory. Allocations are exact, whatever else the machine
//! does, so this is the one part of the guard's speed that a test can hold; the rest is in `benches/`.

use allocation_counter::measure;

#[expect(dead_code, reason = "the benches measure more than is held here")]
#[path = "../benches/stack/fixture.rs"]
mod fixture;

use fixture::{KIB, Shape, call, run, short_call};
use talon_guard::Call;

/// The plugin's text, the block that holds it, and the answer around both; and the name that the plugin
/// declared, which goes down to it with the call.
const FOR_A_CLEAN_CALL: u64 = 4;

/// A copy of the text with its letters turned, to look for what is hidden that way.
const OF_THE_SANITIZER: u64 = 1;

/// The letters of an answer, which wait for a call that could carry a piece of it. A small one's memory is
/// used again once one asks.
const OF_WHAT_WAITS: u64 = 1;

/// So many calls go first: tables, buffers and thread-locals are made once and are no cost of a call.
const WARM_UP: usize = 10;

fn allocations_of(content: String, call: fn() -> Call) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let mut stack = fixture::whole(Shape::plain(content));
    for _ in 0..WARM_UP {
        run(&mut stack, call());
    }
    let call = call();
    let mut answer = None;
    let counted = measure(|| answer = Some(run(&mut stack, call)));
    let answer = answer.expect("it was measured");
    assert!(!answer.report().neutralised_any() && !answer.report().truncated());
    assert!(answer.content().len() >= KIB);
    counted.count_total
}

// Promises: SPEED-1
#[test]
fn a_clean_call_takes_memory_for_what_it_brings_alone() {
    let allocations = allocations_of(fixture::prose(KIB), call);
    assert!(allocations <= FOR_A_CLEAN_CALL + OF_THE_SANITIZER, "{allocations}");
    let allocations = allocations_of(fixture::prose(KIB), short_call);
    assert!(allocations <= FOR_A_CLEAN_CALL + OF_THE_SANITIZER + OF_WHAT_WAITS, "{allocations}");
}

// Promises: SPEED-1
#[test]
fn a_larger_answer_takes_it_no_more_often_but_for_what_waits() {
    let of = |bytes| allocations_of(fixture::prose(bytes), call);
    assert_eq!(of(64 * KIB - 1), of(KIB) + OF_WHAT_WAITS);
}
