//! Random sequences of operations, next to a plain map.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use talon_store::{Engine, Error, Namespace, PageRequest, Quota, Store, StoreOptions, SwapResult, Usage};
use tokio::runtime::Runtime;

use crate::support::{Server, key, plugin, runtime, scratch};

/// Small enough that a dozen operations reach it.
const QUOTA: Quota = Quota { bytes: 60, keys: 6 };

#[derive(Debug, Clone)]
enum Operation {
    Get(u8, String),
    Set(u8, String, Vec<u8>),
    Import(u8, String, Vec<u8>),
    Delete(u8, String),
    /// The expected value is the one that is there, or this one.
    Swap(u8, String, Option<Option<Vec<u8>>>, Option<Vec<u8>>),
    Keys(u8, String, u32),
    Purge(u8),
}

fn operation() -> impl Strategy<Value = Operation> {
    let who = 0..3u8;
    let name = "[ab東]{1,3}";
    let value = || prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        2 => (who.clone(), name).prop_map(|(who, key)| Operation::Get(who, key)),
        6 => (who.clone(), name, value()).prop_map(|(who, key, value)| Operation::Set(who, key, value)),
        3 => (who.clone(), name, value()).prop_map(|(who, key, value)| Operation::Import(who, key, value)),
        2 => (who.clone(), name).prop_map(|(who, key)| Operation::Delete(who, key)),
        4 => (who.clone(), name, prop::option::of(prop::option::of(value())), prop::option::of(value()))
            .prop_map(|(who, key, expected, value)| Operation::Swap(who, key, expected, value)),
        3 => (who.clone(), "[ab東]{0,2}", 1..4u32)
            .prop_map(|(who, prefix, size)| Operation::Keys(who, prefix, size)),
        1 => who.prop_map(Operation::Purge),
    ]
}

type Map = BTreeMap<String, Vec<u8>>;

/// What a map says to a write: whether the quota has room for it.
fn fits(map: &Map, key: &str, value: Option<&Vec<u8>>) -> bool {
    let bytes = |map: &Map| map.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum::<u64>();
    let mut then = map.clone();
    match value {
        Some(value) => then.insert(key.to_owned(), value.clone()),
        None => then.remove(key),
    };
    let (before, after) = (bytes(map), bytes(&then));
    (after <= QUOTA.bytes || after <= before) && (then.len() as u64 <= QUOTA.keys || then.len() <= map.len())
}

async fn agrees(store: &Store, round: u32, operations: Vec<Operation>) {
    let db = store.key_values();
    let namespace = |who: u8| Namespace { plugin: plugin(&format!("p{round}-{who}")), quota: QUOTA };
    let mut maps = [Map::new(), Map::new(), Map::new()];
    for operation in operations {
        match operation.clone() {
            Operation::Get(who, name) => {
                let found = db.get(&namespace(who).plugin, &key(&name)).await.unwrap();
                assert_eq!(found.as_ref(), maps[usize::from(who)].get(&name), "{operation:?}");
            }
            Operation::Set(who, name, value) => {
                let map = &mut maps[usize::from(who)];
                let fits = fits(map, &name, Some(&value));
                let done = db.set(&namespace(who), &key(&name), value.clone()).await;
                assert!(
                    matches!((fits, &done), (true, Ok(())) | (false, Err(Error::Quota { .. }))),
                    "{done:?}"
                );
                if fits {
                    map.insert(name, value);
                }
            }
            Operation::Import(who, name, value) => {
                let map = &mut maps[usize::from(who)];
                let (fits, same) = (fits(map, &name, Some(&value)), map.get(&name) == Some(&value));
                match db.import(&namespace(who), &key(&name), value.clone()).await {
                    Ok(written) => assert!(fits && written != same, "{operation:?}"),
                    Err(error) => assert!(!fits && matches!(error, Error::Quota { .. }), "{error:?}"),
                }
                if fits {
                    map.insert(name, value);
                }
            }
            Operation::Delete(who, name) => {
                let existed = db.delete(&namespace(who).plugin, &key(&name)).await.unwrap();
                assert_eq!(existed, maps[usize::from(who)].remove(&name).is_some());
            }
            Operation::Swap(who, name, expected, value) => {
                let map = &mut maps[usize::from(who)];
                let current = map.get(&name).cloned();
                let expected = expected.unwrap_or_else(|| current.clone());
                let fits = fits(map, &name, value.as_ref());
                let done =
                    db.compare_and_set(&namespace(who), &key(&name), expected.clone(), value.clone()).await;
                match (expected == current, fits) {
                    (false, _) => assert_eq!(done.unwrap(), SwapResult::Conflict(current)),
                    (true, false) => assert!(matches!(done, Err(Error::Quota { .. })), "{done:?}"),
                    (true, true) => {
                        assert_eq!(done.unwrap(), SwapResult::Swapped);
                        match value {
                            Some(value) => map.insert(name, value),
                            None => map.remove(&name),
                        };
                    }
                }
            }
            Operation::Keys(who, prefix, size) => {
                let found = all_keys(store, &namespace(who), &prefix, size).await;
                let expected: Vec<String> =
                    maps[usize::from(who)].keys().filter(|key| key.starts_with(&prefix)).cloned().collect();
                assert_eq!(found, expected, "{operation:?}");
            }
            Operation::Purge(who) => {
                let map = std::mem::take(&mut maps[usize::from(who)]);
                assert_eq!(db.purge(&namespace(who).plugin).await.unwrap(), usage(&map));
            }
        }
    }
    for (who, map) in (0..).zip(&maps) {
        let kept = db.entries(&namespace(who).plugin, "", &PageRequest::first(1000)).await.unwrap().items;
        let kept: Map = kept.into_iter().map(|entry| (entry.key.to_string(), entry.value)).collect();
        assert_eq!(&kept, map);
        assert_eq!(db.usage(&namespace(who).plugin).await.unwrap(), usage(map));
    }
}

fn usage(map: &Map) -> Usage {
    Usage {
        bytes: map.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum(),
        keys: map.len() as u64,
    }
}

async fn all_keys(store: &Store, namespace: &Namespace, prefix: &str, size: u32) -> Vec<String> {
    let (mut keys, mut request) = (Vec::new(), PageRequest::first(size));
    loop {
        let page = store.key_values().keys(&namespace.plugin, prefix, &request).await.unwrap();
        assert!(page.items.len() <= size as usize);
        keys.extend(page.items.into_iter().map(String::from));
        let Some(next) = page.next else { return keys };
        request = PageRequest::after(next, size);
    }
}

/// Each round has its own plugins, so that one database serves all.
fn check(runtime: &Runtime, open: StoreOptions, cases: u32) {
    let store = runtime.block_on(open.open()).unwrap();
    let round = AtomicU32::new(0);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let operations = prop::collection::vec(operation(), 1..50);
    runner
        .run(&operations, |operations| {
            runtime.block_on(agrees(&store, round.fetch_add(1, Ordering::Relaxed), operations));
            Ok(())
        })
        .unwrap();
    runtime.block_on(store.close());
}

// Promises: STORE-1
#[test]
fn sqlite_is_a_map() {
    let (_directory, path) = scratch();
    check(&runtime(), StoreOptions::new(Engine::Sqlite { path }), 64);
}

// Promises: STORE-1
#[test]
fn postgres_is_a_map() {
    let Some(server) = Server::start("postgres_is_a_map") else { return };
    check(&runtime(), StoreOptions::new(Engine::Postgres { url: server.database() }), 32);
}
