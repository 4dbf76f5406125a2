//! How fast clean text and text with hits go through, beside 60 replacements one after another:
//! `cargo bench -p talon-sanitize`.

mod inputs;
mod rivals;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use talon_sanitize::{FamilyCounts, Sanitizer};

const SIZE: usize = 64 << 10;

fn sanitize(c: &mut Criterion) {
    let sanitizer = Sanitizer::default();
    let mut group = c.benchmark_group("text");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let clean = clean();
    for (name, text) in &clean {
        assert_eq!(sanitizer.text(text, &mut FamilyCounts::default()), *text, "{name} is meant to be clean");
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(*name, |b| {
            b.iter(|| black_box(sanitizer.text(black_box(text), &mut FamilyCounts::default())))
        });
    }
    for (name, every) in [("one hit", SIZE), ("hit per KiB", 1024), ("hit per 64 B", 64)] {
        let text = inputs::with_hits(SIZE, every);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| black_box(sanitizer.text(black_box(&text), &mut FamilyCounts::default())))
        });
    }
    group.finish();

    let mut group = c.benchmark_group("others");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let json = inputs::json(SIZE);
    assert_eq!(sanitizer.json(&json, &mut FamilyCounts::default()).as_deref(), Some(&*json));
    group.throughput(Throughput::Bytes(json.len() as u64));
    group.bench_function("structured content", |b| {
        b.iter(|| black_box(sanitizer.json(black_box(&json), &mut FamilyCounts::default())));
    });
    for (name, text) in &clean {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::new("flags", name), |b| {
            b.iter(|| black_box(sanitizer.flags(black_box(text))))
        });
    }
    for (name, text) in
        [("prose", inputs::prose(1024)), ("json", inputs::json(1024)), ("code", inputs::code(1024))]
    {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::new("text and flags at 1 KiB", name), |b| {
            b.iter(|| {
                let text = black_box(&text);
                (sanitizer.text(text, &mut FamilyCounts::default()).len(), sanitizer.flags(text))
            });
        });
    }
    group.finish();

    let mut group = c.benchmark_group("60 replacements one after another");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(20);
    let patterns = rivals::patterns();
    for (name, text) in &clean[..3] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group
            .bench_function(*name, |b| b.iter(|| black_box(rivals::replace_all(&patterns, black_box(text)))));
    }
    group.finish();
}

fn clean() -> [(&'static str, String); 6] {
    [
        ("prose", inputs::prose(SIZE)),
        ("json", inputs::json(SIZE)),
        ("html", inputs::html(SIZE)),
        ("code", inputs::code(SIZE)),
        ("cyrillic", inputs::cyrillic(SIZE)),
        ("chinese", inputs::chinese(SIZE)),
    ]
}

criterion_group!(benches, sanitize);
criterion_main!(benches);
