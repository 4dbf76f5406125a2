//! From every older version of the schema to the present one, with what was written in it.

use std::fs;
use std::path::Path;

use talon_store::{
    Engine, NewMemory, PageRequest, SessionId, SessionQuery, Step, Store, StoreOptions, UpsertedMemory, View,
    Workflow,
};

use crate::support::{Server, key, namespace, plugin, runtime, scratch};

const SESSION: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// The migrations of an engine, oldest first.
fn migrations(engine: &str) -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(engine).join("migrations");
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    assert!(files.len() >= 3);
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// What each version, from the first, lets one write, in a dialect that both engines read.
fn written(version: usize, schema: &str, bytes: impl Fn(&str) -> String, words: &str) -> String {
    let text = bytes("was here");
    let all = [
        format!(
            "INSERT INTO {schema}plugins (name, bytes, keys) VALUES ('old', 9, 1);
            INSERT INTO {schema}key_values (plugin, key, value)
                SELECT id, {key}, {text} FROM {schema}plugins;",
            key = bytes("a")
        ),
        format!(
            "INSERT INTO {schema}sessions (id, sender, channel, state, overrides, metadata, created_at, updated_at,
                next_sequence) VALUES ('{SESSION}', 'ada', 'c', 'idle', '{{}}', '{{}}', 1, 2, 2);
            INSERT INTO {schema}messages (session, sequence, position, role, content, at{column})
                VALUES ('{SESSION}', 1, 1, 'user', {content}, 1{words});",
            column = if words.is_empty() { "" } else { ", words" },
            content = if words.is_empty() { "'was here'".to_owned() } else { text.clone() },
        ),
    ];
    all[..version.min(all.len())].concat()
}

async fn works(open: StoreOptions, version: usize) {
    let store = open.open().await.unwrap();
    let db = store.key_values();
    let found = db.get(&plugin("old"), &key("a")).await.unwrap();
    assert_eq!(found.as_deref(), (version >= 1).then_some(b"was here".as_slice()));
    db.set(&namespace("old"), &key("b"), vec![1]).await.unwrap();
    assert_eq!(db.usage(&plugin("old")).await.unwrap().keys, if version >= 1 { 2 } else { 1 });
    let id = SessionId::new(SESSION).unwrap();
    if version >= 2 {
        let page = store.sessions().messages(id, View::Live, &PageRequest::default()).await.unwrap();
        assert_eq!(page.items[0].content, "was here");
    }
    let query = SessionQuery { text: "anything".into(), ..SessionQuery::default() };
    store.sessions().search(&query, &PageRequest::default()).await.unwrap();
    let new = NewMemory { content: "new".into(), source: "test".into(), ..NewMemory::default() };
    store.memory().remember(new).await.unwrap();
    store.close().await;
}

// Promises: STORE-3
#[test]
fn sqlite_upgrades_from_every_older_version() {
    let all = migrations("sqlite");
    for version in 0..=all.len() {
        let (_directory, path) = scratch();
        runtime().block_on(async {
            let open = StoreOptions::new(Engine::Sqlite { path: path.clone() });
            // Made by the store, for its directory and its mark, and then brought back to what it was.
            open.clone().open().await.unwrap().close().await;
            let mark = {
                let new = rusqlite::Connection::open(&path).unwrap();
                new.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0)).unwrap()
            };
            fs::remove_file(&path).unwrap();
            let old = rusqlite::Connection::open(&path).unwrap();
            old.execute_batch(&all[..version].concat()).unwrap();
            old.execute_batch(&written(version, "", |text| format!("CAST('{text}' AS BLOB)"), "")).unwrap();
            old.execute_batch(&format!("PRAGMA application_id = {mark}; PRAGMA user_version = {version}"))
                .unwrap();
            drop(old);
            works(open, version).await;
        });
    }
}

// Promises: STORE-3
#[test]
fn postgres_upgrades_from_every_older_version() {
    let Some(server) = Server::start("postgres_upgrades_from_every_older_version") else { return };
    let all = migrations("postgres");
    for version in 0..=all.len() {
        let url = server.database();
        let versions: String =
            (1..=version).map(|one| format!("INSERT INTO talon.schema_version VALUES ({one});")).collect();
        let written = written(
            version,
            "talon.",
            |text| format!("convert_to('{text}', 'UTF8')"),
            ", '''was'':1'::tsvector",
        );
        let sql = format!(
            "CREATE SCHEMA talon; CREATE TABLE talon.schema_version (version INT NOT NULL); {}; {versions} {written}",
            all[..version].concat()
        );
        server.execute(&format!("test_{version}"), &sql);
        runtime().block_on(works(StoreOptions::new(Engine::Postgres { url }), version));
    }
}

/// A workflow of somebody's, or everybody's.
async fn recorded(store: &Store, owner: &str) -> UpsertedMemory {
    let steps = vec![Step::new("ci", "build", 1), Step::new("ci", "deploy", 2)];
    let workflow = Workflow { trigger: "deploy the site".into(), steps, outcome: "success".into() };
    let mut new = NewMemory::workflow(workflow, "test");
    new.tags.extend((!owner.is_empty()).then(|| format!("sender:{owner}")));
    store.memory().remember(new).await.unwrap()
}

/// In earlier versions a workflow's fingerprint was the same whoever's it was: `give` makes the one that is
/// there Ada's, and leaves it that fingerprint.
fn old_fingerprint(open: &StoreOptions, give: impl FnOnce()) {
    let of_old = runtime().block_on(async {
        let store = open.clone().open().await.unwrap();
        let kept = recorded(&store, "").await.memory.id;
        store.close().await;
        kept
    });
    give();
    runtime().block_on(async {
        let store = open.clone().open().await.unwrap();
        assert!(recorded(&store, "bob").await.new);
        let again = recorded(&store, "ada").await;
        assert_eq!((again.new, again.memory.id, again.memory.count), (false, of_old, 2));
        assert!(recorded(&store, "").await.new);
        for owner in ["", "ada", "bob"] {
            assert!(!recorded(&store, owner).await.new, "{owner}");
        }
        store.close().await;
    });
}

#[test]
fn sqlite_workflows_without_an_owners_fingerprint_go_on() {
    let (_directory, path) = scratch();
    old_fingerprint(&StoreOptions::new(Engine::Sqlite { path: path.clone() }), || {
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("INSERT INTO memory_tags (tag, memory) SELECT 'sender:ada', id FROM memories")
            .unwrap();
    });
}

#[test]
fn postgres_workflows_without_an_owners_fingerprint_go_on() {
    let Some(server) = Server::start("postgres_workflows_without_an_owners_fingerprint_go_on") else {
        return;
    };
    let url = server.database();
    old_fingerprint(&StoreOptions::new(Engine::Postgres { url }), || {
        server.execute("test_0", "UPDATE talon.memories SET tags = array_append(tags, 'sender:ada')");
    });
}
