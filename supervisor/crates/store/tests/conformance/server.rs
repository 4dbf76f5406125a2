//! What PostgreSQL alone can do: be gone and come back.

use std::time::Duration;

use talon_store::{Engine, Error, OpenError, Store, StoreOptions};

use crate::support::{Server, key, namespace, runtime};

fn open(url: String) -> StoreOptions {
    StoreOptions::new(Engine::Postgres { url }).connections(4)
}

/// Until a call succeeds. Between two tries is what the store itself says.
async fn back(store: &Store) -> u32 {
    let mut refused = 0;
    loop {
        match store.check().await {
            Ok(()) => return refused,
            Err(Error::Unavailable { retry_in, .. }) => {
                refused += 1;
                tokio::time::sleep(retry_in.max(Duration::from_millis(1))).await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

// Promises: STATE-17
#[test]
fn postgres_comes_back_without_opening_again() {
    let Some(mut server) = Server::start("postgres_comes_back_without_opening_again") else { return };
    let url = server.database();
    let runtime = runtime();
    let store = runtime.block_on(open(url.clone()).open()).unwrap();
    let (db, hello) = (store.key_values(), namespace("hello"));
    runtime.block_on(db.set(&hello, &key("a"), b"acknowledged".to_vec())).unwrap();
    server.stop();
    runtime.block_on(async {
        // The first calls detect it, later ones fail at once.
        let lost = db.set(&hello, &key("b"), vec![1]).await.unwrap_err();
        assert!(matches!(lost, Error::Unavailable { .. }) && lost.is_retryable(), "{lost:?}");
        let told = db.get(&hello.plugin, &key("a")).await.unwrap_err();
        assert!(matches!(told, Error::Unavailable { .. }), "{told:?}");
        let refused = open(url.clone()).open().await.unwrap_err();
        assert!(matches!(refused, OpenError::Store(Error::Unavailable { .. })), "{refused:?}");
    });
    let late = runtime.block_on(open(url).even_if_unreachable().open()).unwrap();
    let early = runtime.block_on(late.key_values().get(&hello.plugin, &key("a")));
    assert!(matches!(early, Err(Error::Unavailable { .. })), "{early:?}");
    server.run();
    runtime.block_on(async {
        back(&store).await;
        back(&late).await;
        for store in [&store, &late] {
            let found = store.key_values().get(&hello.plugin, &key("a")).await.unwrap();
            assert_eq!(found, Some(b"acknowledged".to_vec()));
            store.key_values().set(&hello, &key("b"), vec![2]).await.unwrap();
        }
        store.close().await;
        assert!(matches!(store.check().await, Err(Error::Closed)));
    });
}

#[test]
fn postgres_refuses_what_it_cannot_use() {
    let Some(server) = Server::start("postgres_refuses_what_it_cannot_use") else { return };
    let runtime = runtime();
    let url = server.database();
    runtime.block_on(async { open(url.clone()).open().await.unwrap().close().await });
    server.execute("test_0", "INSERT INTO talon.schema_version VALUES (999)");
    let refused = runtime.block_on(open(url).open()).unwrap_err();
    assert!(matches!(&refused, OpenError::Newer { found: 999, .. }), "{refused:?}");
    assert!(refused.to_string().contains("newer Talon"), "{refused}");
    server.execute(
        "postgres",
        "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
    );
    let latin = server.database().replace("test_1", "latin");
    let refused = runtime.block_on(open(latin).open()).unwrap_err().to_string();
    assert!(refused.contains("LATIN1") && refused.contains("createdb"), "{refused}");
}

#[test]
fn addresses_that_promise_too_much_are_refused() {
    let refused = |url: &str| runtime().block_on(open(url.into()).open()).unwrap_err().to_string();
    let secret = "hunter2";
    for (url, word) in [
        (format!("postgresql://u:{secret}@db.example/t?sslmode=verify-ca"), "verify-full"),
        (format!("postgresql://u:{secret}@db.example/t"), "sslmode=disable"),
        (format!("postgresql://u:{secret}@db.example/t?nonsense=1"), "nonsense"),
        (format!("mysql://u:{secret}@db.example"), ""),
    ] {
        let refused = refused(&url);
        assert!(refused.contains(word) && !refused.contains(secret), "{refused}");
        assert!(!format!("{:?}", Engine::Postgres { url }).contains(secret));
    }
    // No process listens there.
    let refused = refused("host=/nonexistent user=talon");
    assert!(refused.contains("cannot be reached"), "{refused}");
}
