//! What the guard stack costs a call, without any IO: the plugin is a function that has its answer ready.
//!
//! `whole` is every layer, for answers of 1 KiB; `layer` is each layer around the ones it needs below it, so
//! that what it takes is the difference, as `fixture.rs` says. Run it with
//! `cargo bench -p talon-guard --bench stack`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

#[expect(dead_code, reason = "differences are for the reader of these figures to take")]
mod fixture;

use fixture::{Case, KIB};

/// The supervisor's own, so that the numbers are the supervisor's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn stacks(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    for cases in [fixture::wholes(KIB), fixture::layers(KIB), fixture::parts(KIB)] {
        for case in cases {
            bench(criterion, case);
        }
    }
}

fn bench(criterion: &mut Criterion, mut case: Case) {
    let mut group = criterion.benchmark_group(case.group);
    group.throughput(Throughput::Elements(1));
    group.bench_function(case.name, |bencher| bencher.iter(|| case.once()));
    group.finish();
}

criterion_group!(benches, stacks);
criterion_main!(benches);
