use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex as SyncMutex;
use talon_extensions::contract::{StorageAnswer, StorageOp, StorageRequest};
use talon_store::{Quota, Resource};

use super::super::caller::CallFailure;
use super::*;

/// How an attempt fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It is not made.
    NotMade,
    /// It is done, and the answer is lost.
    AnswerLost,
    /// It is not done, and that is not known.
    Unknown,
}

/// Each key with its revision and value.
type Rows = BTreeMap<Vec<u8>, (u64, Vec<u8>)>;

#[derive(Default)]
struct FakeBackend {
    /// While it is set, no call is answered.
    hangs: tokio::sync::watch::Sender<bool>,
    rows: SyncMutex<Rows>,
    revisions: AtomicU64,
    /// The faults of the next calls, the last one first; `None`: none.
    faults: SyncMutex<Vec<Option<Fault>>>,
    calls: AtomicU64,
}

#[derive(Clone, Default)]
struct FakeCaller(Arc<FakeBackend>);

impl FakeBackend {
    fn done(&self, asked: &StorageRequest) -> StorageAnswer {
        let bytes = |part: &Option<talon_extensions::contract::StorageBytes>| {
            part.as_ref().map(|part| part.open(usize::MAX / 8).expect("whole"))
        };
        let mut rows = self.rows.lock();
        let key = bytes(&asked.key).unwrap_or_default();
        let current = rows.get(&key).map(|(revision, _)| format!("r{revision}"));
        match asked.op {
            StorageOp::Get => match rows.get(&key) {
                Some((revision, value)) => {
                    StorageAnswer::Found { value: value.clone(), revision: format!("r{revision}") }
                }
                None => StorageAnswer::Absent,
            },
            StorageOp::Set | StorageOp::Delete if current != asked.expected => StorageAnswer::Conflict,
            StorageOp::Set => {
                let revision = self.revisions.fetch_add(1, Ordering::Relaxed);
                rows.insert(key, (revision, bytes(&asked.value).expect("a value")));
                StorageAnswer::Stored { revision: format!("r{revision}") }
            }
            StorageOp::Delete => {
                rows.remove(&key);
                StorageAnswer::Deleted
            }
            StorageOp::Scan => {
                let (prefix, after) =
                    (bytes(&asked.prefix).unwrap_or_default(), bytes(&asked.after).unwrap_or_default());
                let found = rows.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after);
                let mut items: Vec<_> = found
                    .map(|(key, (revision, value))| (key.clone(), format!("r{revision}"), value.len() as u64))
                    .collect();
                let limit = asked.limit.expect("a limit") as usize;
                let more = items.len() > limit;
                items.truncate(limit);
                StorageAnswer::Page { items, more }
            }
        }
    }
}

#[async_trait]
impl StorageCaller for FakeCaller {
    async fn call(&self, asked: &StorageRequest, _: Duration) -> Result<StorageAnswer, CallFailure> {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        // The sender is the backend's, which lives as long.
        let _ = self.0.hangs.subscribe().wait_for(|hangs| !hangs).await;
        let fault = self.0.faults.lock().pop().flatten();
        let failed = |may_be_done| Err(CallFailure { reason: "a fault".to_owned(), may_be_done });
        match fault {
            None => Ok(self.0.done(asked)),
            Some(Fault::NotMade) => failed(false),
            Some(Fault::Unknown) => failed(true),
            Some(Fault::AnswerLost) => {
                self.0.done(asked);
                failed(true)
            }
        }
    }
}

fn store() -> (PluginKeyValues, Arc<FakeBackend>) {
    let caller = FakeCaller::default();
    (PluginKeyValues::new(caller.clone(), "valkey.store".to_owned()), caller.0)
}

fn namespace() -> Namespace {
    Namespace::of(PluginId::new("files").expect("an id"))
}

fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

async fn increment(store: &PluginKeyValues) {
    loop {
        let old = store.get(&namespace().plugin, &key("n")).await.expect("read");
        let count =
            old.as_ref().map_or(0, |old| String::from_utf8_lossy(old).parse::<u64>().expect("a number"));
        let new = Some((count + 1).to_string().into_bytes());
        match store.compare_and_set(&namespace(), &key("n"), old, new).await.expect("written") {
            SwapResult::Swapped => return,
            SwapResult::Conflict(_) => {}
        }
    }
}

// Promises: EXT-103
#[tokio::test(start_paused = true)]
async fn a_counter_is_exact_whatever_becomes_of_the_answers() {
    let (store, backend) = store();
    let faults = [
        None,
        Some(Fault::AnswerLost),
        Some(Fault::NotMade),
        None,
        Some(Fault::Unknown),
        Some(Fault::AnswerLost),
        None,
        None,
        None,
    ];
    // Another order each time, since 9 and 7 have no common divisor.
    *backend.faults.lock() = (0..4000).map(|at| faults[(at * 7 + at / 9) % faults.len()]).collect();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    increment(&store).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("counted");
    }
    assert_eq!(store.get(&namespace().plugin, &key("n")).await.expect("read"), Some(b"200".to_vec()));
}

// Promises: EXT-103
#[tokio::test(start_paused = true)]
async fn what_is_not_answered_is_an_error_and_never_kept_elsewhere() {
    let (store, backend) = store();
    *backend.faults.lock() = vec![Some(Fault::NotMade); 10_000];
    let error = store.set(&namespace(), &key("a"), b"1".to_vec()).await.expect_err("no backend");
    assert!(matches!(&error, Error::Unavailable { reason, .. } if reason == "a fault"), "{error}");
    assert!(store.get(&namespace().plugin, &key("a")).await.is_err());
    assert!(store.check().await.is_err());
    backend.faults.lock().clear();
    assert_eq!(store.get(&namespace().plugin, &key("a")).await.expect("read"), None);
    // Attempts wait longer each time: some dozens at most for each operation.
    assert!(backend.calls.load(Ordering::Relaxed) < 100);
}

// Promises: EXT-104
#[tokio::test(start_paused = true)]
async fn quotas_and_sizes_are_those_of_the_plugins() {
    let (store, backend) = store();
    let small = Namespace { quota: Quota { bytes: 20, keys: 2 }, ..namespace() };
    store.set(&small, &key("aa"), vec![0; 8]).await.expect("10 bytes");
    store.set(&small, &key("bb"), vec![0; 8]).await.expect("20 bytes");
    let error = store.set(&small, &key("bb"), vec![0; 9]).await.expect_err("21 bytes");
    assert!(matches!(error, Error::Quota { resource: Resource::Bytes, used: 20, wanted: 21, .. }), "{error}");
    assert!(store.delete(&small.plugin, &key("aa")).await.expect("deleted"));
    // What a lost answer did is counted anew.
    *backend.faults.lock() = vec![Some(Fault::AnswerLost), None];
    store.set(&small, &key("c"), vec![0; 9]).await.expect("20 bytes");
    assert!(store.set(&small, &key("d"), Vec::new()).await.is_err(), "three keys");
    assert_eq!(store.usage(&small.plugin).await.expect("counted"), Usage { bytes: 20, keys: 2 });
    let large = vec![0; super::super::backend::MAX_BACKEND_VALUE_BYTES + 1];
    let error = store.set(&namespace(), &key("e"), large).await.expect_err("too large");
    assert!(matches!(error, Error::Invalid(_)), "{error}");
}

// Promises: EXT-104
#[tokio::test(start_paused = true)]
async fn pages_are_of_one_plugin_in_the_order_of_its_keys() {
    let (store, _) = store();
    let other = Namespace::of(PluginId::new("files-2").expect("an id"));
    for number in 0..25 {
        store.set(&namespace(), &key(&format!("k/{number:02}")), vec![0; number]).await.expect("set");
        store.set(&other, &key(&format!("k/{number:02}x")), Vec::new()).await.expect("set");
    }
    store.set(&namespace(), &key("ü"), b"\0\xff".to_vec()).await.expect("set");
    let (mut found, mut page) = (Vec::new(), PageRequest::first(10));
    loop {
        let Page { items, next } = store.keys(&namespace().plugin, "k/", &page).await.expect("listed");
        found.extend(items);
        let Some(next) = next else { break };
        // Others write meanwhile.
        store.delete(&namespace().plugin, &key("k/00")).await.expect("deleted");
        page = PageRequest::after(next, 10);
    }
    let wanted: Vec<Key> = (0..25).map(|number| key(&format!("k/{number:02}"))).collect();
    assert_eq!(found, wanted);
    let all = store.entries(&namespace().plugin, "", &PageRequest::first(100)).await.expect("listed");
    assert_eq!(all.items.last(), Some(&Entry { key: key("ü"), value: b"\0\xff".to_vec() }));
    let first = store.plugins(&PageRequest::first(1)).await.expect("listed");
    assert_eq!(first.items[0].0.as_str(), "files");
    let rest = store.plugins(&PageRequest::after(first.next.expect("more"), 9)).await.expect("listed");
    assert_eq!((rest.items.len(), rest.items[0].0.as_str(), rest.next), (1, "files-2", None));
    assert_eq!(store.purge(&other.plugin).await.expect("purged").keys, 25);
    assert_eq!(store.plugins(&PageRequest::first(0)).await.expect("listed").items.len(), 1);
}

// Promises: EXT-102
#[tokio::test(start_paused = true)]
async fn another_keys_value_is_an_error() {
    let (store, backend) = store();
    store.set(&namespace(), &key("a"), b"1".to_vec()).await.expect("set");
    store.set(&namespace(), &key("b"), b"2".to_vec()).await.expect("set");
    {
        let mut rows = backend.rows.lock();
        let of_b = rows[&b"state/files!b"[..]].clone();
        rows.insert(b"state/files!a".to_vec(), of_b);
    }
    let error = store.get(&namespace().plugin, &key("a")).await.expect_err("mixed up");
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    // A value that cannot be read can be replaced.
    store.set(&namespace(), &key("a"), b"3".to_vec()).await.expect("set");
    assert_eq!(store.get(&namespace().plugin, &key("a")).await.expect("read"), Some(b"3".to_vec()));
}

// Promises: EXT-103
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_key_and_goes_leaves_nothing_behind() {
    let (store, backend) = store();
    backend.hangs.send_replace(true);
    let set = |value: &'static [u8]| {
        let store = store.clone();
        tokio::spawn(async move { store.set(&namespace(), &key("a"), value.to_vec()).await })
    };
    let first = set(b"first");
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    // Both the request and its write are there, and the write has called the backend.
    while backend.calls.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let with_one = alive();
    let waiting: Vec<_> = (0..100).map(|_| set(b"waiting")).collect();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(alive(), with_one + 100, "a request that waits is no second task");
    for task in waiting {
        task.abort();
        assert!(task.await.expect_err("aborted").is_cancelled());
    }
    assert_eq!(alive(), with_one);
    // The one that holds the lock is done although its requester has gone.
    first.abort();
    assert!(first.await.expect_err("aborted").is_cancelled());
    assert_eq!(alive(), with_one - 1);
    backend.hangs.send_replace(false);
    set(b"last").await.expect("it runs").expect("set");
    let revisions = backend.revisions.load(Ordering::Relaxed);
    assert_eq!(revisions, 2, "the first one and the last one");
    assert_eq!(store.get(&namespace().plugin, &key("a")).await.expect("read"), Some(b"last".to_vec()));
}
