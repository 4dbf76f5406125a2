//! Runs cases against an engine, each on its own store.

mod postgres;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use talon_store::{Engine, Key, Namespace, PluginId, Store, StoreOptions};
use tempfile::TempDir;

pub(crate) use postgres::Server;

/// One promise.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Fixture) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// A case's store, and the way to another one at the same place, as another process would have it.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) open: StoreOptions,
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        pub(crate) const CASES: &[crate::support::Case] =
            &[$(crate::support::Case { name: stringify!($case), run: |fixture| Box::pin($case(fixture)) }),+];
    };
}
pub(crate) use cases;

/// A directory of one's own and the file in it.
pub(crate) fn scratch() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state/state.db");
    (directory, path)
}

pub(crate) fn on_sqlite(cases: &[Case]) {
    run(cases, || {
        let (directory, path) = scratch();
        (directory, StoreOptions::new(Engine::Sqlite { path }))
    });
}

pub(crate) fn on_postgres(test: &str, cases: &[Case]) {
    let Some(server) = Server::start(test) else { return };
    on_postgres_with(&server, cases, "");
}

/// In databases in which this SQL was run first.
pub(crate) fn on_postgres_with(server: &Server, cases: &[Case], sql: &str) {
    run(cases, || {
        let url = server.database();
        let name = url.rsplit_once("dbname=").map(|(_, name)| name.to_owned()).unwrap();
        server.execute(&name, sql);
        ((), StoreOptions::new(Engine::Postgres { url }))
    });
}

fn run<Kept>(cases: &[Case], place: impl Fn() -> (Kept, StoreOptions)) {
    let runtime = runtime();
    let mut failed = Vec::new();
    for case in cases {
        let (_kept, open) = place();
        let since = std::time::Instant::now();
        let done = runtime.block_on(async {
            let store = open.clone().open().await.unwrap();
            let done = tokio::spawn((case.run)(Fixture { store: store.clone(), open })).await;
            store.close().await;
            done
        });
        let word = if done.is_ok() { "ok    " } else { "FAILED" };
        println!("{word} {} {:?}", case.name, since.elapsed());
        failed.extend(done.err().map(|_| case.name));
    }
    assert!(failed.is_empty(), "{} of {} cases failed: {}", failed.len(), cases.len(), failed.join(", "));
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Says by name why a test does not run here. On CI, where everything has to run, it is a failure.
pub(crate) fn skip(test: &str, reason: &str) {
    let everything = std::env::var_os("CI").is_some() && nix::unistd::geteuid().is_root();
    assert!(!everything, "{test} would be skipped on CI: {reason}");
    eprintln!("SKIPPED {test}: {reason}");
}

pub(crate) fn plugin(id: &str) -> PluginId {
    PluginId::new(id).unwrap()
}

pub(crate) fn namespace(id: &str) -> Namespace {
    Namespace::of(plugin(id))
}

pub(crate) fn key(key: &str) -> Key {
    Key::new(key).unwrap()
}
