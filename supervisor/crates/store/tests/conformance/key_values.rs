//! Key-values.

use std::sync::Arc;

use talon_store::{
    Entry, Error, Key, KeySize, KeyValues, Namespace, PageRequest, PluginId, Quota, Resource, SwapResult,
    Usage,
};

use crate::support::{Fixture, cases, key, namespace, plugin};

cases![
    what_was_set_is_read_until_it_is_deleted,
    plugins_do_not_see_each_other,
    any_bytes_are_values_and_any_text_is_a_key,
    keys_and_values_have_limits,
    plugin_ids_are_names_and_nothing_else,
    keys_come_in_order_and_in_pages,
    a_page_token_of_something_else_is_refused,
    compare_and_set_swaps_only_what_is_expected,
    of_many_swaps_of_one_value_each_counts_once,
    a_quota_of_bytes_says_used_and_limit,
    a_quota_of_keys_says_used_and_limit,
    above_a_lowered_quota_there_is_still_room_to_make_room,
    a_purged_plugin_keeps_nothing_and_can_begin_again,
    plugins_are_listed_with_their_usage,
    one_that_fails_does_not_fail_the_others,
    entries_and_sizes_come_in_order_and_in_pages,
    what_is_imported_again_is_not_written,
    everything_is_there_after_opening_again,
    another_opener_sees_what_was_written,
    several_openers_swap_and_remove_what_each_other_wrote,
];

async fn what_was_set_is_read_until_it_is_deleted(Fixture { store, .. }: Fixture) {
    let (db, hello) = (store.key_values(), namespace("hello"));
    assert_eq!(db.get(&hello.plugin, &key("a")).await.unwrap(), None);
    db.set(&hello, &key("a"), b"1".to_vec()).await.unwrap();
    assert_eq!(db.get(&hello.plugin, &key("a")).await.unwrap(), Some(b"1".to_vec()));
    db.set(&hello, &key("a"), b"two".to_vec()).await.unwrap();
    assert_eq!(db.get(&hello.plugin, &key("a")).await.unwrap(), Some(b"two".to_vec()));
    assert_eq!(db.usage(&hello.plugin).await.unwrap(), Usage { bytes: 4, keys: 1 });
    assert!(db.delete(&hello.plugin, &key("a")).await.unwrap());
    assert!(!db.delete(&hello.plugin, &key("a")).await.unwrap());
    assert_eq!(db.get(&hello.plugin, &key("a")).await.unwrap(), None);
    assert_eq!(db.usage(&hello.plugin).await.unwrap(), Usage::default());
    let counters = store.counters();
    assert!(counters.writes >= 3 && counters.commits >= 1, "{counters:?}");
}

async fn plugins_do_not_see_each_other(Fixture { store, .. }: Fixture) {
    let db = store.key_values();
    let (a, b) = (namespace("a"), namespace("a-b"));
    db.set(&a, &key("shared"), b"of a".to_vec()).await.unwrap();
    assert_eq!(db.get(&b.plugin, &key("shared")).await.unwrap(), None);
    assert!(db.keys(&b.plugin, "", &PageRequest::default()).await.unwrap().items.is_empty());
    db.set(&b, &key("shared"), b"of b".to_vec()).await.unwrap();
    assert!(db.delete(&b.plugin, &key("shared")).await.unwrap());
    db.purge(&b.plugin).await.unwrap();
    assert_eq!(db.get(&a.plugin, &key("shared")).await.unwrap(), Some(b"of a".to_vec()));
}

async fn any_bytes_are_values_and_any_text_is_a_key(Fixture { store, .. }: Fixture) {
    let (db, hello) = (store.key_values(), namespace("hello"));
    let bytes: Vec<u8> = (0..=255).collect();
    for name in ["../../etc/passwd", "NUL\0inside", "東京", "%_*'\";--", " ", "\u{10ffff}"] {
        db.set(&hello, &key(name), bytes.clone()).await.unwrap();
        assert_eq!(db.get(&hello.plugin, &key(name)).await.unwrap().as_ref(), Some(&bytes), "{name:?}");
    }
    db.set(&hello, &key("empty"), Vec::new()).await.unwrap();
    assert_eq!(db.get(&hello.plugin, &key("empty")).await.unwrap(), Some(Vec::new()));
    let all = db.keys(&hello.plugin, "", &PageRequest::default()).await.unwrap().items;
    assert_eq!(all.len(), 7);
    assert!(all.windows(2).all(|pair| pair[0].as_bytes() < pair[1].as_bytes()));
}

async fn keys_and_values_have_limits(Fixture { store, .. }: Fixture) {
    let (db, hello) = (store.key_values(), namespace("hello"));
    assert!(Key::new("").is_err() && Key::new("k".repeat(513)).is_err());
    let (longest, largest) = (key(&"k".repeat(512)), vec![7; 1024 * 1024]);
    db.set(&hello, &longest, largest.clone()).await.unwrap();
    assert_eq!(db.get(&hello.plugin, &longest).await.unwrap(), Some(largest.clone()));
    let larger = vec![7; 1024 * 1024 + 1];
    assert!(matches!(db.set(&hello, &longest, larger.clone()).await, Err(Error::Invalid { .. })));
    let swapped = db.compare_and_set(&hello, &longest, Some(largest), Some(larger)).await;
    assert!(matches!(swapped, Err(Error::Invalid { .. })));
}

async fn plugin_ids_are_names_and_nothing_else(_: Fixture) {
    for id in ["a", "0", "code-search", &"x".repeat(64)] {
        assert!(PluginId::new(id).is_ok(), "{id}");
    }
    let long = "x".repeat(10_000);
    for id in ["", "-a", "A", "a_b", "a.b", "../a", "a/b", "a\0", "a b", "ä", "a\n", &long] {
        let refused = PluginId::new(id).unwrap_err().to_string();
        assert!(refused.len() < 200 && !refused.contains("../"), "{refused}");
    }
}

async fn keys_come_in_order_and_in_pages(Fixture { store, .. }: Fixture) {
    let (db, hello) = (store.key_values(), namespace("hello"));
    for number in [3, 1, 4, 15, 9, 2, 6] {
        db.set(&hello, &key(&format!("n/{number:02}")), vec![1]).await.unwrap();
    }
    for other in ["n", "n.", "n0", "o", "\u{10ffff}", "\u{10ffff}a"] {
        db.set(&hello, &key(other), vec![1]).await.unwrap();
    }
    let (mut request, mut found, mut pages) = (PageRequest::first(3), Vec::new(), 0);
    loop {
        let page = db.keys(&hello.plugin, "n/", &request).await.unwrap();
        assert!(page.items.len() <= 3);
        found.extend(page.items.into_iter().map(String::from));
        pages += 1;
        // Between two pages, what comes before does not matter.
        db.delete(&hello.plugin, &key("n/01")).await.unwrap();
        let Some(token) = page.next else { break };
        request = PageRequest::after(talon_store::PageToken::parse(&token.to_string()).unwrap(), 3);
    }
    assert_eq!(found, ["n/01", "n/02", "n/03", "n/04", "n/06", "n/09", "n/15"]);
    assert_eq!(pages, 3);
    let last = db.keys(&hello.plugin, "\u{10ffff}", &PageRequest::default()).await.unwrap();
    assert_eq!((last.items.len(), last.next), (2, None));
}

async fn a_page_token_of_something_else_is_refused(Fixture { store, .. }: Fixture) {
    assert!(talon_store::PageToken::parse("not a token").is_err());
    let token = talon_store::PageToken::parse("ff00").unwrap();
    let listed = store.key_values().plugins(&PageRequest::after(token.clone(), 0)).await;
    assert!(matches!(listed, Err(Error::Invalid { .. })));
    let query = talon_store::SessionQuery { text: "x".into(), ..Default::default() };
    let found = store.sessions().search(&query, &PageRequest::after(token, 0)).await;
    assert!(matches!(found, Err(Error::Invalid { .. })));
}

async fn compare_and_set_swaps_only_what_is_expected(Fixture { store, .. }: Fixture) {
    let (db, hello, at) = (store.key_values(), namespace("hello"), key("at"));
    let some = |text: &str| Some(text.as_bytes().to_vec());
    let steps = [
        (some("1"), some("2"), SwapResult::Conflict(None)),
        (None, None, SwapResult::Swapped),
        (None, some("1"), SwapResult::Swapped),
        (None, some("2"), SwapResult::Conflict(some("1"))),
        (some("1"), some("2"), SwapResult::Swapped),
        (some("1"), None, SwapResult::Conflict(some("2"))),
        (some("2"), None, SwapResult::Swapped),
        (some("2"), None, SwapResult::Conflict(None)),
    ];
    for (expected, value, outcome) in steps {
        let done = db.compare_and_set(&hello, &at, expected.clone(), value.clone()).await.unwrap();
        assert_eq!(done, outcome, "{expected:?} → {value:?}");
    }
    assert_eq!(db.usage(&hello.plugin).await.unwrap(), Usage::default());
}

/// Counts up ten times.
async fn count(db: Arc<dyn KeyValues>, counter: Key) {
    let hello = namespace("hello");
    for _ in 0..10 {
        let mut current = db.get(&hello.plugin, &counter).await.unwrap();
        loop {
            let number: u32 =
                current.as_deref().map_or(0, |text| std::str::from_utf8(text).unwrap().parse().unwrap());
            let next = Some((number + 1).to_string().into_bytes());
            match db.compare_and_set(&hello, &counter, current, next).await.unwrap() {
                SwapResult::Swapped => break,
                SwapResult::Conflict(found) => current = found,
            }
        }
    }
}

async fn of_many_swaps_of_one_value_each_counts_once(Fixture { store, .. }: Fixture) {
    let (db, counter) = (store.key_values(), key("counter"));
    let counting: Vec<_> = (0..8).map(|_| tokio::spawn(count(Arc::clone(&db), counter.clone()))).collect();
    for one in counting {
        one.await.unwrap();
    }
    assert_eq!(db.get(&plugin("hello"), &counter).await.unwrap(), Some(b"80".to_vec()));
}

async fn a_quota_of_bytes_says_used_and_limit(Fixture { store, .. }: Fixture) {
    let db = store.key_values();
    let hello = Namespace { quota: Quota { bytes: 100, keys: 10 }, ..namespace("hello") };
    db.set(&hello, &key("a"), vec![0; 59]).await.unwrap();
    let refused = db.set(&hello, &key("b"), vec![0; 40]).await.unwrap_err();
    let Error::Quota { plugin, resource, used, limit, wanted } = &refused else { panic!("{refused:?}") };
    assert_eq!(
        (plugin.as_str(), *resource, *used, *limit, *wanted),
        ("hello", Resource::Bytes, 60, 100, 101)
    );
    assert!(refused.to_string().contains("60 of 100 bytes"), "{refused}");
    assert!(!refused.is_retryable());
    assert_eq!(db.get(&hello.plugin, &key("b")).await.unwrap(), None);
    db.set(&hello, &key("b"), vec![0; 39]).await.unwrap();
    let swapped = db.compare_and_set(&hello, &key("c"), None, Some(vec![])).await;
    assert!(matches!(swapped, Err(Error::Quota { used: 100, .. })));
    // What replaces itself is counted once.
    db.set(&hello, &key("a"), vec![1; 59]).await.unwrap();
    assert_eq!(db.usage(&hello.plugin).await.unwrap(), Usage { bytes: 100, keys: 2 });
}

async fn a_quota_of_keys_says_used_and_limit(Fixture { store, .. }: Fixture) {
    let db = store.key_values();
    let hello = Namespace { quota: Quota { bytes: 1000, keys: 2 }, ..namespace("hello") };
    for name in ["a", "b", "a"] {
        db.set(&hello, &key(name), vec![0]).await.unwrap();
    }
    let refused = db.set(&hello, &key("c"), vec![0]).await.unwrap_err();
    assert!(matches!(refused, Error::Quota { resource: Resource::Keys, used: 2, limit: 2, wanted: 3, .. }));
    db.delete(&hello.plugin, &key("a")).await.unwrap();
    db.set(&hello, &key("c"), vec![0]).await.unwrap();
}

async fn above_a_lowered_quota_there_is_still_room_to_make_room(Fixture { store, .. }: Fixture) {
    let db = store.key_values();
    let mut hello = namespace("hello");
    db.set(&hello, &key("a"), vec![0; 100]).await.unwrap();
    db.set(&hello, &key("b"), vec![0; 100]).await.unwrap();
    hello.quota = Quota { bytes: 50, keys: 1 };
    db.set(&hello, &key("a"), vec![0; 90]).await.unwrap();
    assert!(matches!(db.set(&hello, &key("a"), vec![0; 91]).await, Err(Error::Quota { .. })));
    assert!(db.delete(&hello.plugin, &key("b")).await.unwrap());
    db.set(&hello, &key("a"), vec![0; 49]).await.unwrap();
}

async fn a_purged_plugin_keeps_nothing_and_can_begin_again(Fixture { store, .. }: Fixture) {
    let (db, hello) = (store.key_values(), namespace("hello"));
    assert_eq!(db.purge(&hello.plugin).await.unwrap(), Usage::default());
    for name in ["a", "b", "c"] {
        db.set(&hello, &key(name), vec![0; 9]).await.unwrap();
    }
    assert_eq!(db.purge(&hello.plugin).await.unwrap(), Usage { bytes: 30, keys: 3 });
    assert_eq!(db.get(&hello.plugin, &key("a")).await.unwrap(), None);
    db.set(&hello, &key("a"), vec![0; 9]).await.unwrap();
    assert_eq!(db.usage(&hello.plugin).await.unwrap(), Usage { bytes: 10, keys: 1 });
}

async fn plugins_are_listed_with_their_usage(Fixture { store, .. }: Fixture) {
    let db = store.key_values();
    for id in ["b", "a-a", "a", "a0"] {
        db.set(&namespace(id), &key("k"), vec![0; id.len()]).await.unwrap();
    }
    db.set(&namespace("empty"), &key("k"), vec![0]).await.unwrap();
    db.delete(&plugin("empty"), &key("k")).await.unwrap();
    let first = db.plugins(&PageRequest::first(3)).await.unwrap();
    let second = db.plugins(&PageRequest::after(first.next.clone().unwrap(), 3)).await.unwrap();
    let all: Vec<_> =
        first.items.into_iter().chain(second.items).map(|(id, use_)| (id.to_string(), use_.bytes)).collect();
    let expected = [("a", 2), ("a-a", 4), ("a0", 3), ("b", 2)].map(|(id, bytes)| (id.to_owned(), bytes));
    assert_eq!((all, second.next), (expected.to_vec(), None));
}

async fn one_that_fails_does_not_fail_the_others(Fixture { store, .. }: Fixture) {
    let db = store.key_values();
    let writing: Vec<_> = (0..60u8)
        .map(|number| {
            let db = Arc::clone(&db);
            tokio::spawn(async move {
                // Every third has a quota that nothing fits into.
                let bytes = if number % 3 == 0 { 1 } else { 1_000_000 };
                let quota = Quota { bytes, keys: 1000 };
                let name = key(&format!("{number}"));
                db.set(&Namespace { quota, ..namespace("hello") }, &name, vec![number]).await
            })
        })
        .collect();
    for (number, written) in (0..60u8).zip(writing) {
        let written = written.await.unwrap();
        assert_eq!(written.is_err(), number % 3 == 0, "{number}: {written:?}");
        let found = db.get(&plugin("hello"), &key(&format!("{number}"))).await.unwrap();
        assert_eq!(found.is_some(), number % 3 != 0);
    }
    assert_eq!(db.usage(&plugin("hello")).await.unwrap().keys, 40);
}

async fn everything_is_there_after_opening_again(Fixture { store, open }: Fixture) {
    store.key_values().set(&namespace("hello"), &key("a"), b"kept".to_vec()).await.unwrap();
    store.close().await;
    let closed = store.key_values().get(&plugin("hello"), &key("a")).await;
    assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");
    let again = open.open().await.unwrap();
    assert_eq!(again.key_values().get(&plugin("hello"), &key("a")).await.unwrap(), Some(b"kept".to_vec()));
    again.close().await;
}

async fn another_opener_sees_what_was_written(Fixture { store, open }: Fixture) {
    let other = open.open().await.unwrap();
    store.key_values().set(&namespace("hello"), &key("a"), b"1".to_vec()).await.unwrap();
    assert_eq!(other.key_values().get(&plugin("hello"), &key("a")).await.unwrap(), Some(b"1".to_vec()));
    other.key_values().set(&namespace("hello"), &key("a"), b"2".to_vec()).await.unwrap();
    assert_eq!(store.key_values().get(&plugin("hello"), &key("a")).await.unwrap(), Some(b"2".to_vec()));
    other.close().await;
}

/// As several agents with one database do: none overwrites what another one wrote, and what one removes is gone for all.
async fn several_openers_swap_and_remove_what_each_other_wrote(Fixture { store, open }: Fixture) {
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(open.clone().open().await.unwrap());
    }
    let counting: Vec<_> = others
        .iter()
        .chain([&store])
        .map(|store| tokio::spawn(count(store.key_values(), key("counter"))))
        .collect();
    for one in counting {
        one.await.unwrap();
    }
    let hello = namespace("hello");
    for (number, other) in others.iter().enumerate() {
        let (db, own) = (other.key_values(), key(&format!("of/{number}")));
        assert_eq!(db.get(&hello.plugin, &key("counter")).await.unwrap(), Some(b"40".to_vec()));
        db.set(&hello, &own, b"1".to_vec()).await.unwrap();
    }
    // One removes all of them, and says so in a value that the others read.
    let first = store.key_values();
    let page = first.entries(&hello.plugin, "of/", &PageRequest::default()).await.unwrap();
    assert_eq!(page.items.len(), others.len());
    for Entry { key, .. } in page.items {
        assert!(first.delete(&hello.plugin, &key).await.unwrap());
    }
    first.set(&hello, &key("epoch"), b"2".to_vec()).await.unwrap();
    for (number, other) in others.iter().enumerate() {
        let (db, own) = (other.key_values(), key(&format!("of/{number}")));
        assert_eq!(db.get(&hello.plugin, &key("epoch")).await.unwrap(), Some(b"2".to_vec()));
        assert!(db.entries(&hello.plugin, "of/", &PageRequest::default()).await.unwrap().items.is_empty());
        // What it knows from before changes nothing any more.
        let swap = |next: Option<&[u8]>| {
            db.compare_and_set(&hello, &own, Some(b"1".to_vec()), next.map(<[u8]>::to_vec))
        };
        assert_eq!(swap(Some(b"2")).await.unwrap(), SwapResult::Conflict(None));
        assert_eq!(swap(None).await.unwrap(), SwapResult::Conflict(None));
    }
    for other in others {
        other.close().await;
    }
}

async fn entries_and_sizes_come_in_order_and_in_pages(Fixture { store, .. }: Fixture) {
    let (db, hello) = (store.key_values(), namespace("hello"));
    // Pages of megabytes end by their size, pages of little by their number.
    let written: Vec<Entry> = (0..20u8)
        .map(|number| {
            let large = if number < 10 { 1024 * 1024 } else { usize::from(number) };
            Entry { key: key(&format!("a{number:02}")), value: vec![number; large] }
        })
        .collect();
    for Entry { key, value } in written.iter().rev() {
        db.set(&hello, key, value.clone()).await.unwrap();
    }
    db.set(&hello, &key("b"), vec![1]).await.unwrap();
    db.set(&namespace("hello2"), &key("a"), vec![1]).await.unwrap();
    let (mut read, mut pages, mut request) = (Vec::new(), 0, PageRequest::first(6));
    loop {
        let page = db.entries(&hello.plugin, "a", &request).await.unwrap();
        let bytes: usize = page.items.iter().map(|entry| entry.value.len()).sum();
        assert!(page.items.len() <= 6 && bytes <= talon_store::limits::MAX_PAGE_BYTES, "{bytes}");
        read.extend(page.items);
        pages += 1;
        let Some(next) = page.next else { break };
        request = PageRequest::after(next, 6);
    }
    assert!(read == written && pages >= 5, "{pages}");
    let sizes = |page: PageRequest| {
        let (db, plugin) = (Arc::clone(&db), hello.plugin.clone());
        async move { db.sizes(&plugin, "a", &page).await.unwrap() }
    };
    let first = sizes(PageRequest::first(15)).await;
    let rest = sizes(PageRequest::after(first.next.unwrap(), 0)).await;
    assert_eq!((first.items.len(), rest.items.len(), rest.next), (15, 5, None));
    for (size, Entry { key, value }) in first.items.into_iter().chain(rest.items).zip(&written) {
        assert_eq!(size, KeySize { key: key.clone(), bytes: value.len() as u64 });
    }
    let nobody = db.entries(&plugin("nobody"), "", &PageRequest::default()).await.unwrap();
    assert!(nobody.items.is_empty() && nobody.next.is_none());
}

async fn what_is_imported_again_is_not_written(Fixture { store, .. }: Fixture) {
    let db = store.key_values();
    let hello = Namespace { plugin: plugin("hello"), quota: Quota { bytes: 10, keys: 2 } };
    assert!(db.import(&hello, &key("a"), vec![1; 4]).await.unwrap());
    assert!(!db.import(&hello, &key("a"), vec![1; 4]).await.unwrap());
    assert!(db.import(&hello, &key("a"), vec![2; 5]).await.unwrap());
    assert_eq!(db.get(&hello.plugin, &key("a")).await.unwrap(), Some(vec![2; 5]));
    let full = db.import(&hello, &key("b"), vec![1; 9]).await.unwrap_err();
    assert!(matches!(full, Error::Quota { used: 6, limit: 10, wanted: 16, .. }), "{full:?}");
    assert!(db.import(&hello, &key("b"), Vec::new()).await.unwrap());
    assert_eq!(db.usage(&hello.plugin).await.unwrap(), Usage { bytes: 7, keys: 2 });
    let large = vec![0; talon_store::limits::MAX_VALUE_BYTES + 1];
    assert!(matches!(db.import(&hello, &key("c"), large).await, Err(Error::Invalid { .. })));
}
