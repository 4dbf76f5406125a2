//! Backups and restores: made while others write, refused when they are not what they say, and whole or not
//! at all.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use talon_store::{
    BackupInfo, Engine, Error, NewMemory, NewMessage, NewSession, OpenError, PageRequest, Restored, Role,
    SessionId, Store, StoreOptions,
};
use tempfile::TempDir;

use crate::support::{Server, key, namespace, plugin, runtime, scratch};

const KEYS: usize = 300;
/// Larger together than SQLite's cache, so that a restore writes to the disk from its beginning on.
const VALUE: usize = 20_000;

fn open(path: &Path) -> StoreOptions {
    StoreOptions::new(Engine::Sqlite { path: path.to_owned() })
}

/// Gives all keys one value.
async fn write(store: &Store, mark: u8) {
    for number in 0..KEYS {
        let name = key(&format!("{number:04}"));
        store.key_values().set(&namespace("hello"), &name, vec![mark; VALUE]).await.unwrap();
    }
}

/// The one value that all keys have.
async fn read(store: &Store) -> u8 {
    let entries = all(store).await;
    assert_eq!(entries.len(), KEYS);
    let mark = entries[0];
    assert!(entries.iter().all(|other| *other == mark), "a mix of {mark} and others");
    mark
}

async fn all(store: &Store) -> Vec<u8> {
    let mut marks = Vec::new();
    for number in 0..KEYS {
        let value = store.key_values().get(&plugin("hello"), &key(&format!("{number:04}"))).await.unwrap();
        let value = value.unwrap();
        assert!(value.len() == VALUE && value.iter().all(|byte| *byte == value[0]));
        marks.push(value[0]);
    }
    marks
}

/// A directory with a closed store in it, and copies of it with the marks 1 and 2; the store has 3.
fn copies() -> (TempDir, PathBuf, [PathBuf; 2]) {
    let (directory, path) = scratch();
    let copies = [1, 2].map(|mark| directory.path().join(format!("copy-{mark}.db")));
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        for (mark, copy) in (1..).zip(&copies) {
            write(&store, mark).await;
            store.backup(copy).await.unwrap();
        }
        write(&store, 3).await;
        store.close().await;
    });
    (directory, path, copies)
}

fn beside(path: &Path, begins: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    let name = format!("{}{begins}", path.file_name().unwrap().to_str().unwrap());
    let mut found: Vec<_> =
        all.filter(|file| file.file_name().unwrap().to_str().unwrap().starts_with(&name)).collect();
    found.sort_unstable();
    found
}

// Promises: STATE-20
#[test]
fn a_backup_is_one_moment_while_others_write() {
    let (directory, path) = scratch();
    let to = directory.path().join("backup.db");
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        write(&store, 1).await;
        let session = NewSession { sender: "ada".into(), channel: "c".into(), ..NewSession::default() };
        store.sessions().create(session).await.unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let writing = tokio::spawn({
            let (store, done) = (store.clone(), Arc::clone(&done));
            async move {
                let mut number = 0u64;
                while !done.load(Ordering::Relaxed) {
                    // Both or none: what a copy between two moments would tear apart.
                    for name in ["first", "second"] {
                        let value = number.to_be_bytes().to_vec();
                        store.key_values().set(&namespace("pair"), &key(name), value).await.unwrap();
                    }
                    number += 1;
                }
                number
            }
        });
        let copies: Vec<_> = (0..5).map(|number| to.with_extension(number.to_string())).collect();
        for copy in &copies {
            let BackupInfo { schema_version, bytes } = store.backup(copy).await.unwrap();
            let made = fs::metadata(copy).unwrap();
            assert_eq!((schema_version, bytes), (store.schema_version(), made.len()));
            assert_eq!(made.permissions().mode() & 0o777, 0o600);
        }
        done.store(true, Ordering::Relaxed);
        assert!(writing.await.unwrap() > 0);
        // Never over a file that is there, and nothing else is left.
        let before = fs::read(&copies[0]).unwrap();
        let there = store.backup(&copies[0]).await.unwrap_err();
        assert!(matches!(there, Error::File { .. }), "{there:?}");
        assert!(store.backup(&directory.path().join("no/such/place")).await.is_err());
        assert_eq!(fs::read(&copies[0]).unwrap(), before);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), copies.len() + 1);
        store.close().await;
        assert!(matches!(store.backup(&to).await, Err(Error::Closed)));
        for copy in &copies {
            let private = directory.path().join("private");
            fs::create_dir(&private).unwrap();
            fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
            fs::rename(copy, private.join("copy.db")).unwrap();
            let store = open(&private.join("copy.db")).open().await.unwrap();
            assert_eq!(read(&store).await, 1);
            let pair = ["first", "second"].map(|name| {
                let db = store.key_values();
                async move {
                    let value = db.get(&plugin("pair"), &key(name)).await.unwrap();
                    value.map_or(0, |value| u64::from_be_bytes(value.try_into().unwrap()))
                }
            });
            let [first, second] = pair;
            let (first, second) = (first.await, second.await);
            assert!(first == second || first == second + 1, "{first} {second}");
            store.close().await;
            fs::remove_dir_all(private).unwrap();
        }
    });
}

#[test]
fn closing_ends_a_backup_and_leaves_nothing_half() {
    let (directory, path, _copies) = copies();
    let to = directory.path().join("late.db");
    runtime().block_on(async {
        for _ in 0..5 {
            let store = open(&path).exclusive().open().await.unwrap();
            let backup = tokio::spawn({
                let (store, to) = (store.clone(), to.clone());
                async move { store.backup(&to).await }
            });
            store.close().await;
            // The lock is free, so no process has the file any more.
            open(&path).exclusive().open().await.unwrap().close().await;
            match backup.await.unwrap() {
                Ok(_) => fs::remove_file(&to).unwrap(),
                Err(error) => assert!(matches!(error, Error::Closed), "{error:?}"),
            }
            assert!(beside(&to, "").is_empty());
        }
    });
}

// Promises: STATE-20
#[test]
fn a_copy_takes_the_place_of_all_while_it_is_read_and_written() {
    let (_directory, path, copies) = copies();
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        let new = NewMemory { content: "since then".into(), source: "test".into(), ..NewMemory::default() };
        let memory = store.memory().remember(new).await.unwrap().memory.id;
        let checked = store.restore(&copies[0], true).await.unwrap();
        assert_eq!(checked.kept, None);
        assert_eq!(read(&store).await, 3);
        let done = Arc::new(AtomicBool::new(false));
        // Writes to other keys go on; what was acknowledged before a restore is in what was kept.
        let writing = tokio::spawn({
            let (store, done) = (store.clone(), Arc::clone(&done));
            async move {
                while !done.load(Ordering::Relaxed) {
                    store.key_values().set(&namespace("other"), &key("a"), vec![1]).await.unwrap();
                }
            }
        });
        for (mark, copy) in (1..).zip(&copies) {
            let Restored { schema_version, copy_version, kept, .. } =
                store.restore(copy, false).await.unwrap();
            assert_eq!((schema_version, copy_version), (store.schema_version(), store.schema_version()));
            assert!(kept.unwrap().exists());
            assert_eq!(read(&store).await, mark);
        }
        done.store(true, Ordering::Relaxed);
        writing.await.unwrap();
        assert_eq!(store.memory().get(memory).await.unwrap(), None);
        // What was there first is the oldest that was kept, and comes back with its search index.
        let kept = beside(&path, ".before-restore-");
        assert_eq!(kept.len(), 2);
        store.restore(&kept[0], false).await.unwrap();
        assert_eq!(read(&store).await, 3);
        let query = talon_store::MemoryQuery { text: Some("since".into()), ..Default::default() };
        let found = store.memory().search(&query, &PageRequest::default()).await.unwrap();
        assert_eq!(found.items.iter().map(|found| found.id).collect::<Vec<_>>(), [memory]);
        for _ in 0..3 {
            store.restore(&copies[0], false).await.unwrap();
        }
        let kept = beside(&path, ".before-restore-");
        assert_eq!(kept.len(), 3, "{kept:?}");
        // The oldest of them is restored, and not forgotten in the same moment.
        store.restore(&kept[0], false).await.unwrap();
        assert!(kept[0].exists());
        for file in kept.iter().filter(|file| file.exists()) {
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        write(&store, 9).await;
        store.close().await;
        assert!(beside(&path, ".restoring").is_empty() && beside(&path, "-wal").is_empty());
        let store = open(&path).open().await.unwrap();
        assert_eq!(read(&store).await, 9);
        store.close().await;
    });
}

/// Each reader takes all values of a plugin in one statement, so that each sees one moment.
// Promises: STATE-20
#[test]
fn readers_see_the_old_or_the_new() {
    let (_directory, path, copies) = copies();
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let reading: Vec<_> = (0..3)
            .map(|_| {
                let (path, done) = (path.clone(), Arc::clone(&done));
                tokio::task::spawn_blocking(move || {
                    // As another process would.
                    let other = rusqlite::Connection::open(&path).unwrap();
                    other.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
                    let mut seen = std::collections::BTreeSet::new();
                    while !done.load(Ordering::Relaxed) {
                        let sql = "SELECT count(DISTINCT value), count(*), hex(substr(min(value), 1, 1)) FROM key_values";
                        let found = other.query_row(sql, [], |row| {
                            Ok((row.get::<_, u32>(0)?, row.get::<_, usize>(1)?, row.get::<_, String>(2)?))
                        });
                        let (values, keys, mark) = found.unwrap();
                        assert_eq!((values, keys), (1, KEYS));
                        seen.insert(mark);
                    }
                    seen
                })
            })
            .collect();
        for round in 0..20 {
            store.restore(&copies[round % 2], false).await.unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for one in reading {
            println!("saw {:?}", one.await.unwrap());
        }
        store.close().await;
    });
}

// Promises: STATE-20
#[test]
fn a_restore_that_is_killed_leaves_the_old_or_the_new() {
    const ROUNDS: u64 = 40;
    let (_directory, path, copies) = copies();
    let (log, size) = (path.with_extension("db-wal"), fs::metadata(&path).unwrap().len());
    let (mut marks, mut middles) = (std::collections::BTreeMap::<u8, u32>::new(), 0);
    for round in 0..ROUNDS {
        let mut victim = Command::new(env!("CARGO_BIN_EXE_store-fixture"))
            .arg("restore")
            .arg(&path)
            .args(&copies)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Killed when the log has grown to another length each round: before a page is written, in the
        // middle, at the end.
        let length = size * round / ROUNDS;
        while fs::metadata(&log).map_or(0, |found| found.len()) < length.max(1) {
            assert!(victim.try_wait().unwrap().is_none(), "it ended by itself");
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        middles += u32::from(!beside(&path, ".restoring").is_empty());
        runtime().block_on(async {
            let store = open(&path).exclusive().open().await.unwrap();
            *marks.entry(read(&store).await).or_default() += 1;
            // And what the killed one left is not in the way.
            store.restore(&copies[0], true).await.unwrap();
            store.close().await;
        });
        assert!(beside(&path, ".restoring").is_empty());
    }
    println!("{marks:?} after {ROUNDS} rounds, {middles} of them in the middle of a restore");
    assert!(middles > 0, "no round has hit a restore");
}

/// What must not be restored, by what is said about it.
fn bad_copies(directory: &Path, good: &Path) -> Vec<(PathBuf, &'static str)> {
    let bytes = fs::read(good).unwrap();
    let make = |name: &str, bytes: &[u8]| {
        let path = directory.join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let edit = |name: &str, sql: &str| {
        let path = make(name, &bytes);
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        path
    };
    let mut torn = bytes.clone();
    let middle = torn.len() / 2 / 4096 * 4096;
    torn[middle..middle + 2048].fill(0xa5);
    vec![
        (make("empty", b""), "empty"),
        (make("yaml", b"sessions:\n- this is YAML\n".repeat(40).as_slice()), "damaged"),
        (make("short", &bytes[..100]), "cut off"),
        (make("half", &bytes[..middle]), "damaged"),
        (make("page", &bytes[..bytes.len() - 4096]), "damaged"),
        (make("torn", &torn), "damaged"),
        (edit("foreign", "PRAGMA application_id = 7"), "another program"),
        (edit("newer", "PRAGMA user_version = 999"), "999"),
        (edit("nothing", "PRAGMA user_version = 0"), "nothing in it"),
        (edit("trigger", "CREATE TRIGGER t AFTER INSERT ON plugins BEGIN SELECT 1; END"), "tables"),
        (edit("less", "DROP TABLE memory_tags"), "tables"),
        (edit("orphans", "PRAGMA foreign_keys = OFF; DELETE FROM plugins"), "rows are missing"),
        (edit("layout", "PRAGMA page_size = 8192; VACUUM"), "layout"),
        (directory.to_owned(), "not a file"),
    ]
}

// Promises: STATE-21
#[test]
fn a_bad_copy_is_refused_with_what_is_wrong_and_changes_nothing() {
    let (directory, path, copies) = copies();
    let bad = bad_copies(directory.path(), &copies[0]);
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        for (copy, word) in &bad {
            for check_only in [true, false] {
                let refused = store.restore(copy, check_only).await.unwrap_err();
                let said = refused.to_string();
                assert!(matches!(&refused, Error::BadCopy { path, .. } if path == copy), "{refused:?}");
                assert!(said.contains(word) && said.contains(&copy.display().to_string()), "{word}: {said}");
            }
        }
        let missing = store.restore(&directory.path().join("missing"), false).await.unwrap_err();
        assert!(matches!(missing, Error::File { .. }), "{missing:?}");
        let link = directory.path().join("link");
        symlink(&path, &link).unwrap();
        for itself in [&path, &link] {
            let refused = store.restore(itself, false).await.unwrap_err().to_string();
            assert!(refused.contains("itself"), "{refused}");
        }
        assert_eq!(read(&store).await, 3);
        assert!(beside(&path, ".before-restore-").is_empty() && beside(&path, ".restoring").is_empty());
        store.close().await;
        // Larger than the store may be.
        let small = open(&path).max_bytes(64 * 1024).open().await.unwrap();
        let refused = small.restore(&copies[0], false).await.unwrap_err().to_string();
        assert!(refused.contains("may have 65536"), "{refused}");
        assert_eq!(read(&small).await, 3);
        small.close().await;
    });
}

// Promises: STATE-14
#[test]
fn an_unusable_file_is_kept_and_the_copy_put_in_its_place() {
    let (directory, path, copies) = copies();
    let whole = fs::read(&path).unwrap();
    let log = path.with_extension("db-wal");
    let edit = |sql: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let unusable: [(&str, &dyn Fn()); 6] = [
        ("damaged", &|| fs::write(&path, &whole[..5 * 4096]).unwrap()),
        ("newer", &|| edit("PRAGMA user_version = 999")),
        ("foreign", &|| edit("PRAGMA application_id = 0")),
        ("log alone", &|| fs::rename(&path, &log).unwrap()),
        // As a restore leaves it that is interrupted, before and after the log is out of the way.
        ("interrupted", &|| {
            fs::rename(&path, &log).unwrap();
            fs::write(&path, "").unwrap();
        }),
        ("interrupted later", &|| fs::write(&path, "").unwrap()),
    ];
    runtime().block_on(async {
        for (number, (what, ruin)) in unusable.iter().enumerate() {
            ruin();
            let refused = open(&path).open().await.unwrap_err();
            assert!(
                matches!(
                    refused,
                    OpenError::Damaged { .. } | OpenError::Newer { .. } | OpenError::Foreign { .. }
                ),
                "{what}: {refused:?}"
            );
            let before = fs::read(&path).or_else(|_| fs::read(&log)).unwrap();
            let place = open(&path).open_for_restore().await.unwrap();
            let second = open(&path).open_for_restore().await.unwrap_err();
            assert!(matches!(second, OpenError::InUse { .. }), "{second:?}");
            for (copy, _) in bad_copies(directory.path(), &copies[0]) {
                let refused = place.restore(&copy, false).await.unwrap_err();
                assert!(matches!(refused, Error::BadCopy { .. }), "{refused:?}");
            }
            assert_eq!(place.restore(&copies[0], true).await.unwrap().kept, None);
            assert_eq!(fs::read(&path).or_else(|_| fs::read(&log)).unwrap(), before);
            // Logs of theirs may have been kept too. Only the name is looked at: the directory's is anything.
            let damaged = || {
                let kept = beside(&path, ".damaged-").into_iter();
                kept.map(|file| {
                    let name = file.file_name().unwrap().to_str().unwrap();
                    name.trim_end_matches("-wal").trim_end_matches("-shm").to_owned()
                })
                .collect::<std::collections::BTreeSet<_>>()
                .len()
            };
            let aside = damaged();
            let restored = place.restore(&copies[number % 2], false).await.unwrap();
            drop(place);
            let kept = restored.kept.unwrap();
            let log_kept = PathBuf::from(format!("{}-wal", kept.display()));
            assert_eq!(fs::read(&kept).or_else(|_| fs::read(log_kept)).unwrap(), before, "{what}");
            assert_eq!(damaged(), aside + 1);
            let store = open(&path).exclusive().open().await.unwrap();
            assert_eq!(store.location(), path.display().to_string());
            assert_eq!(usize::from(read(&store).await), number % 2 + 1);
            store.close().await;
        }
    });
}

#[test]
fn an_older_copy_is_brought_forward_and_itself_left_alone() {
    let (directory, path, _copies) = copies();
    let old = directory.path().join("old.db");
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/migrations");
    let first = fs::read_to_string(migrations.join("0001_key_values.sql")).unwrap();
    let mark: i32 = rusqlite::Connection::open(&path)
        .unwrap()
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .unwrap();
    rusqlite::Connection::open(&old)
        .unwrap()
        .execute_batch(&format!(
            "{first} INSERT INTO plugins (name, bytes, keys) VALUES ('old', 9, 1);
            INSERT INTO key_values (plugin, key, value) VALUES (1, CAST('a' AS BLOB), CAST('was here' AS BLOB));
            PRAGMA application_id = {mark}; PRAGMA user_version = 1"
        ))
        .unwrap();
    let before = fs::read(&old).unwrap();
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        let restored = store.restore(&old, false).await.unwrap();
        assert_eq!((restored.copy_version, restored.schema_version), (1, store.schema_version()));
        let found = store.key_values().get(&plugin("old"), &key("a")).await.unwrap();
        assert_eq!(found.as_deref(), Some(b"was here".as_slice()));
        let session = NewSession { sender: "ada".into(), channel: "c".into(), ..NewSession::default() };
        let id: SessionId = store.sessions().create(session).await.unwrap().id;
        let message = NewMessage::text(Role::User, "new".to_owned());
        store.sessions().append(id, talon_store::Expected::Next(1), vec![message]).await.unwrap();
        store.close().await;
    });
    assert_eq!(fs::read(&old).unwrap(), before);
}

#[test]
fn postgres_has_its_own_means() {
    let Some(server) = Server::start("postgres_has_its_own_means") else { return };
    let url = server.database();
    runtime().block_on(async {
        let open = StoreOptions::new(Engine::Postgres { url });
        let store = open.clone().open().await.unwrap();
        assert!(store.location().ends_with("/test_0"), "{}", store.location());
        let backup = store.backup(Path::new("/nonexistent")).await.unwrap_err();
        assert!(
            matches!(backup, Error::Unsupported(_)) && backup.to_string().contains("pg_dump"),
            "{backup}"
        );
        let restore = store.restore(Path::new("/nonexistent"), true).await.unwrap_err();
        assert!(restore.to_string().contains("pg_restore"), "{restore}");
        store.close().await;
        assert!(open.open_for_restore().await.is_err());
    });
}
