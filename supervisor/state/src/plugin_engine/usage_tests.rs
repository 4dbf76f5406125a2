use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use talon_extensions::contract::{StorageAnswer, StorageRequest};
use talon_store::Resource;

use super::super::caller::{CallFailure, StorageCaller};
use super::*;

/// A backend with one key of a plugin. While it is counted, writes of that plugin end in uncertainty.
struct CountedBackend {
    usages: Arc<Usages>,
    /// How many of the next counts are disturbed.
    disturbed: Arc<AtomicUsize>,
}

#[async_trait]
impl StorageCaller for CountedBackend {
    async fn call(&self, _: &StorageRequest, _: Duration) -> Result<StorageAnswer, CallFailure> {
        let left = self.disturbed.load(Ordering::Relaxed);
        if left > 0 {
            self.disturbed.store(left - 1, Ordering::Relaxed);
            self.usages.forget(&reservation());
        }
        let name = names::key(&namespace().plugin, &key("aa"));
        let bytes = 8 + super::super::record::OVERHEAD_BYTES as u64;
        Ok(StorageAnswer::Page { items: vec![(name, "r1".to_owned(), bytes)], more: false })
    }
}

/// A quota that the key of the backend, 10 bytes, and another one of 10 bytes fill.
fn namespace() -> Namespace {
    let plugin = PluginId::new("files").expect("an id");
    Namespace { plugin, quota: Quota { bytes: 20, keys: 9 } }
}

fn key(text: &str) -> Key {
    Key::new(text).expect("a key")
}

/// One of a write whose outcome is not known.
fn reservation() -> Reservation {
    Reservation { plugin: namespace().plugin, key: key("x"), old: None, new: None, generation: 0 }
}

struct Counted {
    usages: Arc<Usages>,
    disturbed: Arc<AtomicUsize>,
    backend: Backend,
}

impl Counted {
    fn new() -> Self {
        let (usages, disturbed) = (Arc::new(Usages::default()), Arc::new(AtomicUsize::new(0)));
        let backend = CountedBackend { usages: Arc::clone(&usages), disturbed: Arc::clone(&disturbed) };
        Self { usages, disturbed, backend: Backend::new(Arc::new(backend)) }
    }

    /// Reserves for a new key, of two bytes, with a value of so many.
    async fn reserve(&self, bytes: u64) -> Result<Reservation, Error> {
        self.usages.reserve(&self.backend, &namespace(), &key("bb"), None, Some(bytes)).await
    }

    /// What is reserved and stored.
    async fn used(&self) -> u64 {
        match self.reserve(1000).await {
            Err(Error::Quota { resource: Resource::Bytes, used, .. }) => used,
            other => panic!("{:?}", other.map(|_| ())),
        }
    }
}

// Promises: EXT-104
#[tokio::test(start_paused = true)]
async fn a_quota_is_checked_however_often_it_is_counted() {
    for disturbed in 0..MAX_COUNTS {
        let counted = Counted::new();
        counted.disturbed.store(disturbed, Ordering::Relaxed);
        assert!(matches!(counted.reserve(9).await, Err(Error::Quota { .. })), "{disturbed}");
        counted.disturbed.store(disturbed, Ordering::Relaxed);
        assert!(counted.reserve(8).await.is_ok(), "{disturbed}");
        assert_eq!(counted.used().await, 20);
    }
    let counted = Counted::new();
    counted.disturbed.store(MAX_COUNTS, Ordering::Relaxed);
    assert!(matches!(counted.reserve(1).await, Err(Error::Unavailable { .. })));
    assert_eq!(counted.used().await, 10, "the next one counts");
}

// Promises: EXT-104
#[tokio::test(start_paused = true)]
async fn a_reservation_of_before_a_count_changes_nothing() {
    let counted = Counted::new();
    let early = counted.reserve(8).await.expect("20 bytes");
    let failed = counted.usages.reserve(&counted.backend, &namespace(), &key("aa"), Some(8), Some(2)).await;
    counted.usages.forget(&failed.expect("14 bytes"));
    let late = counted.reserve(1).await.expect("13 bytes");
    counted.usages.release(early);
    assert_eq!(counted.used().await, 13);
    counted.usages.commit(&late);
    assert_eq!(counted.used().await, 13);
    counted.usages.release(late);
    assert_eq!(counted.used().await, 10);
    // One that is written after all may be in the count or not: it is counted again.
    let early = counted.reserve(8).await.expect("20 bytes");
    counted.usages.forget(&reservation());
    let _late = counted.reserve(1).await.expect("13 bytes");
    counted.usages.commit(&early);
    assert_eq!(counted.used().await, 10);
}
