//! The cost of a durable write and of a read, next to plain SQLite on the same disk in the same run.
//!
//! `cargo bench -p talon-store`. Each figure is the time of one operation with so many callers at once;
//! behind each `set` stands how many commits, each one fsync, a write took.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use talon_store::{Engine, Key, KeyValues, Namespace, PluginId, Quota, Store, StoreOptions};
use tokio::runtime::Runtime;

/// What a plugin keeps: a few hundred bytes, never the same, since SQLite neither writes nor syncs what is
/// there already.
fn value(number: u64) -> [u8; 256] {
    let mut value = [7; 256];
    value[..8].copy_from_slice(&number.to_ne_bytes());
    value
}

/// As many keys as fit into every cache, so that the disk is in the writes alone.
const KEYS: u64 = 1000;
const CALLERS: [u32; 3] = [1, 16, 64];

fn name(number: u64) -> Key {
    Key::new(format!("key-{:04}", number % KEYS)).expect("a short key")
}

/// A value that no key has had.
fn fresh() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    value(NEXT.fetch_add(1, Ordering::Relaxed)).to_vec()
}

fn namespace() -> Namespace {
    let quota = Quota { bytes: u64::MAX / 2, keys: u64::MAX / 2 };
    Namespace { plugin: PluginId::new("bench").expect("a good name"), quota }
}

/// On a disk: a memory file system has no fsync.
fn scratch() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory below target");
    let path = directory.path().join("state/state.db");
    (directory, path)
}

/// The time that `operations` of `one` take with so many callers.
async fn timed<F>(
    db: Arc<dyn KeyValues>,
    callers: u64,
    operations: u64,
    one: impl Fn(Arc<dyn KeyValues>, u64) -> F,
) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let one = &one;
    let next = Arc::new(AtomicU64::new(0));
    let since = Instant::now();
    let calling = (0..callers.min(operations)).map(|_| {
        let (db, next) = (Arc::clone(&db), Arc::clone(&next));
        async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= operations {
                    break;
                }
                one(Arc::clone(&db), number).await;
            }
        }
    });
    futures_util::future::join_all(calling).await;
    since.elapsed()
}

fn store(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (_directory, path) = scratch();
    let store = runtime.block_on(StoreOptions::new(Engine::Sqlite { path }).open()).expect("a new store");
    sets(criterion, &runtime, &store);
    gets(criterion, &runtime, &store);
    side_by_side(&runtime, &store);
    runtime.block_on(store.close());
}

fn sets(criterion: &mut Criterion, runtime: &Runtime, store: &Store) {
    let mut group = criterion.benchmark_group("set");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    let (_directory, path) = scratch();
    let raw = raw(&path);
    group.bench_function("rusqlite/1", |bench| {
        let mut set = raw
            .prepare("INSERT INTO kv VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            .expect("good SQL");
        let mut number = 0;
        bench.iter(|| {
            number += 1;
            set.execute((name(number).as_bytes(), value(number))).expect("a write")
        });
    });
    for callers in CALLERS {
        let before = store.counters();
        group.bench_with_input(BenchmarkId::new("store", callers), &callers, |bench, &callers| {
            bench.iter_custom(|operations| {
                runtime.block_on(timed(
                    store.key_values(),
                    callers.into(),
                    operations,
                    |db, number| async move {
                        db.set(&namespace(), &name(number), fresh()).await.expect("a write");
                    },
                ))
            });
        });
        let after = store.counters();
        let (writes, commits) = (after.writes - before.writes, after.commits - before.commits);
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let ratio = commits as f64 / writes.max(1) as f64;
        println!("set/store/{callers}: {writes} writes in {commits} commits: {ratio:.3} fsyncs per write");
    }
    group.finish();
}

fn gets(criterion: &mut Criterion, runtime: &Runtime, store: &Store) {
    let mut group = criterion.benchmark_group("get");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    let (_directory, path) = scratch();
    let raw = raw(&path);
    for number in 0..KEYS {
        raw.execute("INSERT INTO kv VALUES (?1, ?2)", (name(number).as_bytes(), value(number)))
            .expect("a write");
        let set = async { store.key_values().set(&namespace(), &name(number), fresh()).await };
        runtime.block_on(set).expect("a write");
    }
    group.bench_function("rusqlite/1", |bench| {
        let mut get = raw.prepare("SELECT value FROM kv WHERE key = ?1").expect("good SQL");
        let mut number = 0;
        bench.iter(|| {
            number += 1;
            get.query_row([name(number).as_bytes()], |row| row.get::<_, Vec<u8>>(0)).expect("a value")
        });
    });
    for callers in CALLERS {
        group.bench_with_input(BenchmarkId::new("store", callers), &callers, |bench, &callers| {
            bench.iter_custom(|operations| {
                runtime.block_on(timed(
                    store.key_values(),
                    callers.into(),
                    operations,
                    |db, number| async move {
                        let plugin = namespace().plugin;
                        assert!(db.get(&plugin, &name(number)).await.expect("a read").is_some());
                    },
                ))
            });
        });
    }
    group.finish();
}

/// What a disk takes for an fsync changes with whoever else uses it, by far more than what is compared here.
/// So raw SQLite, one caller and many take turns, and their sums are compared.
fn side_by_side(runtime: &Runtime, store: &Store) {
    const ROUNDS: u32 = 10;
    const SLICE: u32 = 100;
    let (_directory, path) = scratch();
    let raw = raw(&path);
    let mut number = 0;
    let mut per_set = [Duration::ZERO; 4];
    for _ in 0..ROUNDS {
        let since = Instant::now();
        for _ in 0..SLICE {
            number += 1;
            raw.execute(
                "INSERT OR REPLACE INTO kv VALUES (?1, ?2)",
                (name(number).as_bytes(), value(number)),
            )
            .expect("a write");
        }
        per_set[0] += since.elapsed() / SLICE;
        for (callers, spent) in CALLERS.into_iter().zip(&mut per_set[1..]) {
            let operations = SLICE * callers;
            let took =
                timed(store.key_values(), callers.into(), operations.into(), |db, number| async move {
                    db.set(&namespace(), &name(number), fresh()).await.expect("a write");
                });
            *spent += runtime.block_on(took) / operations;
        }
    }
    for (who, spent) in ["rusqlite/1", "store/1", "store/16", "store/64"].iter().zip(per_set) {
        let ratio = per_set[1].as_secs_f64() / spent.as_secs_f64();
        println!(
            "side by side: {who:<10} {:>10.1?} a set, {ratio:.1} times the rate of store/1",
            spent / ROUNDS
        );
    }
}

/// SQLite alone, as durable as the store.
fn raw(path: &Path) -> rusqlite::Connection {
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
    let raw = rusqlite::Connection::open(path).expect("a new database");
    raw.pragma_update(None, "journal_mode", "wal").expect("a log");
    raw.pragma_update(None, "synchronous", "full").expect("an fsync for each commit");
    raw.execute_batch("CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB NOT NULL)").expect("good SQL");
    raw
}

criterion_group!(benches, store);
criterion_main!(benches);
