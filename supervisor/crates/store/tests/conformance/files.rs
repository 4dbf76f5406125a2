//! What SQLite alone can meet: files of somebody else, damage, a full disk.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use talon_store::{
    Counters, Engine, Error, Expected, NewMemory, NewMessage, NewSession, OpenError, Role, Store,
    StoreOptions,
};
use tempfile::TempDir;

use crate::support::{key, namespace, plugin, runtime, scratch, skip};

fn open(path: &Path) -> StoreOptions {
    StoreOptions::new(Engine::Sqlite { path: path.to_owned() })
}

fn refused(path: &Path) -> OpenError {
    runtime().block_on(open(path).open()).unwrap_err()
}

/// A database with something in it, closed.
fn database() -> (TempDir, PathBuf) {
    let (directory, path) = scratch();
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        for number in 0..200 {
            let name = key(&format!("{number}"));
            store.key_values().set(&namespace("hello"), &name, vec![7; 500]).await.unwrap();
        }
        store.close().await;
    });
    assert!(!path.with_extension("db-wal").exists(), "a closed database has its log within");
    (directory, path)
}

// Promises: STATE-16
#[test]
fn files_and_directories_are_nobody_elses() {
    let (_directory, path) = database();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = path.parent().unwrap();
    assert_eq!((mode(directory), mode(&path)), (0o700, 0o600));
    let runtime = runtime();
    let store = runtime.block_on(open(&path).open()).unwrap();
    for file in fs::read_dir(directory).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert!(!file.to_string_lossy().contains(".new-"), "{}", file.display());
    }
    runtime.block_on(store.close());
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    runtime.block_on(async { open(&path).open().await.unwrap().close().await });
    assert_eq!(mode(&path), 0o600);
    for open in [0o750, 0o705, 0o711, 0o770] {
        fs::set_permissions(directory, Permissions::from_mode(open)).unwrap();
        let refused = refused(&path);
        assert!(matches!(&refused, OpenError::Exposed { mode, .. } if *mode == open), "{refused:?}");
        assert!(refused.to_string().contains(&format!("chmod 700 {}", directory.display())), "{refused}");
    }
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    let test = "what_belongs_to_another_user_is_refused";
    if !nix::unistd::geteuid().is_root() {
        return skip(test, "only root can give a file away");
    }
    let (_directory, path) = database();
    for place in [path.parent().unwrap(), &path] {
        std::os::unix::fs::chown(place, Some(65534), None).unwrap();
        let refused = refused(&path);
        assert!(matches!(&refused, OpenError::NotOurs { owner: 65534, us: 0, .. }), "{refused:?}");
        assert!(refused.to_string().contains(&format!("chown -R 0 {}", place.display())), "{refused}");
        let restore = runtime().block_on(open(&path).open_for_restore());
        assert_eq!(restore.is_err(), place != path, "a restore keeps the file and makes its own");
        std::os::unix::fs::chown(place, Some(0), None).unwrap();
    }
    runtime().block_on(async { open(&path).open().await.unwrap().close().await });
}

/// What is refused is left as it was, to the byte, and no other file appears but the lock.
fn left_alone(path: &Path, check: impl Fn(&OpenError) -> bool) {
    let before = fs::read(path).unwrap();
    let refused = refused(path);
    assert!(check(&refused), "{refused:?}");
    assert!(refused.to_string().contains(&path.display().to_string()), "{refused}");
    assert_eq!(fs::read(path).unwrap(), before);
}

fn damaged(error: &OpenError) -> bool {
    matches!(error, OpenError::Damaged { .. }) && error.to_string().contains("restore a backup")
}

// Promises: STATE-13
#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let (_directory, path) = database();
    let whole = fs::read(&path).unwrap();
    // Cut off at many lengths, also within a page and to nothing.
    for kept in [0, 1, 15, 16, 99, 100, 512, 4095, 4096, 4097, 5 * 4096, whole.len() / 2, whole.len() - 4096]
    {
        fs::write(&path, &whole[..kept]).unwrap();
        left_alone(&path, damaged);
    }
    // Overwritten at the beginning and in the middle, from the head of a page: the second half of one may hold nothing.
    for from in [0, 4096, whole.len() / 2 / 4096 * 4096] {
        let mut bytes = whole.clone();
        bytes[from..from + 2048].fill(0xa5);
        fs::write(&path, &bytes).unwrap();
        left_alone(&path, damaged);
    }
    fs::write(&path, "sessions:\n- this is YAML\n").unwrap();
    left_alone(&path, damaged);
    fs::write(&path, &whole).unwrap();
    runtime().block_on(async { open(&path).open().await.unwrap().close().await });
}

#[test]
fn a_file_that_was_examined_before_is_opened_and_still_looked_at() {
    let (_directory, path) = database();
    let whole = fs::read(&path).unwrap();
    runtime().block_on(async { open(&path).examined().open().await.unwrap().close().await });
    let mut bytes = whole;
    bytes[..2048].fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let refused = runtime().block_on(open(&path).examined().open()).unwrap_err();
    assert!(damaged(&refused), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_log_without_its_database_is_not_played_into_a_new_one() {
    let (_directory, path) = database();
    let log = path.with_extension("db-wal");
    fs::rename(&path, &log).unwrap();
    let refused = refused(&path);
    assert!(damaged(&refused) && refused.to_string().contains("-wal"), "{refused}");
    assert!(!path.exists() && log.exists());
}

// Promises: STORE-3
#[test]
fn a_database_of_another_program_or_of_a_newer_talon_is_left_as_it_is() {
    let (_directory, path) = database();
    let edit = |sql: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    edit("PRAGMA user_version = 999");
    left_alone(&path, |error| {
        matches!(error, OpenError::Newer { found: 999, .. }) && error.to_string().contains("newer Talon")
    });
    edit("PRAGMA user_version = 3; PRAGMA application_id = 0");
    left_alone(&path, |error| matches!(error, OpenError::Foreign { .. }));
}

// Promises: STATE-34
#[test]
fn an_exclusive_opener_is_alone() {
    let (_directory, path) = scratch();
    runtime().block_on(async {
        let alone = open(&path).exclusive().open().await.unwrap();
        for second in [open(&path), open(&path).exclusive()] {
            let refused = second.open().await.unwrap_err();
            let OpenError::InUse { holder: Some(holder), .. } = &refused else { panic!("{refused:?}") };
            assert_eq!(holder.pid, std::process::id());
            assert!(refused.to_string().contains(&format!("process {}", holder.pid)), "{refused}");
        }
        alone.close().await;
        let (one, two) = (open(&path).open().await.unwrap(), open(&path).open().await.unwrap());
        let refused = open(&path).exclusive().open().await.unwrap_err();
        assert!(matches!(refused, OpenError::InUse { .. }), "{refused:?}");
        one.close().await;
        two.close().await;
        open(&path).exclusive().open().await.unwrap().close().await;
    });
}

/// While there is no memory none is looked for, so each way in which one comes has to be noticed.
// Promises: GW-295
#[test]
fn memories_are_found_that_come_to_a_database_without_any() {
    let (directory, path) = scratch();
    let copy = directory.path().join("copy.db");
    let memory =
        |content: &str| NewMemory { content: content.into(), source: "test".into(), ..NewMemory::default() };
    runtime().block_on(async {
        let store = open(&path).exclusive().open().await.unwrap();
        let found = async |store: &Store| store.memory().related("green tea", None, 9).await.unwrap().len();
        assert_eq!(found(&store).await, 0);
        store.memory().remember(memory("Ada drinks green tea")).await.unwrap();
        assert_eq!(found(&store).await, 1);
        store.backup(&copy).await.unwrap();
        store.close().await;
        let again = open(&path).exclusive().open().await.unwrap();
        assert_eq!(found(&again).await, 1, "of before");
        again.close().await;
        let (_elsewhere, path) = scratch();
        let other = open(&path).exclusive().open().await.unwrap();
        assert_eq!(found(&other).await, 0);
        other.restore(&copy, true).await.unwrap();
        assert_eq!(found(&other).await, 0);
        other.restore(&copy, false).await.unwrap();
        assert_eq!(found(&other).await, 1, "restored");
        other.close().await;
    });
}

#[test]
fn many_that_begin_at_once_begin_with_the_same_file() {
    let (_directory, path) = scratch();
    runtime().block_on(async {
        let opening: Vec<_> = (0..8).map(|_| tokio::spawn(open(&path).open())).collect();
        for (number, one) in (0..8u8).zip(opening) {
            let store = one.await.unwrap().unwrap();
            store.key_values().set(&namespace("hello"), &key(&format!("{number}")), vec![1]).await.unwrap();
            store.close().await;
        }
        let store = open(&path).open().await.unwrap();
        assert_eq!(store.key_values().usage(&plugin("hello")).await.unwrap().keys, 8);
        store.close().await;
    });
}

/// Writes until there is no room, then makes room, and looks whether everything acknowledged is there.
async fn fill(store: &Store, make_room: impl AsyncFn(&Store)) {
    let (db, hello) = (store.key_values(), namespace("hello"));
    let session = NewSession { sender: "ada".into(), channel: "c".into(), ..NewSession::default() };
    let session = store.sessions().create(session).await.unwrap().id;
    let mut kept = Vec::new();
    let full = loop {
        let name = key(&format!("{:04}", kept.len()));
        match db.set(&hello, &name, vec![7; 20_000]).await {
            Ok(()) => kept.push(name),
            Err(error) => break error,
        }
        assert!(kept.len() < 10_000, "it never gets full");
    };
    assert!(matches!(full, Error::Full(_)) && full.is_retryable(), "{full:?}");
    // At once, where they share a transaction, none of them is acknowledged and then missing.
    let writing: Vec<_> = (0..20)
        .map(|number| {
            let db = store.key_values();
            tokio::spawn(async move {
                let name = key(&format!("x{number}"));
                db.set(&namespace("hello"), &name, vec![7; 20_000]).await.map(|()| name)
            })
        })
        .collect();
    for one in writing {
        match one.await.unwrap() {
            Ok(name) => kept.push(name),
            Err(error) => assert!(matches!(error, Error::Full(_)), "{error:?}"),
        }
    }
    for name in &kept {
        assert!(db.get(&hello.plugin, name).await.unwrap().is_some(), "{name}");
    }
    make_room(store).await;
    db.set(&hello, &key("later"), vec![7; 20_000]).await.unwrap();
    let message = NewMessage::text(Role::User, "x".repeat(5000));
    store.sessions().append(session, Expected::Next(1), vec![message]).await.unwrap();
}

#[test]
fn at_its_size_limit_the_store_is_full_until_something_is_deleted() {
    let (_directory, path) = scratch();
    runtime().block_on(async {
        let store = open(&path).max_bytes(2 * 1024 * 1024).open().await.unwrap();
        fill(&store, async |store| {
            for number in 0..5 {
                let name = key(&format!("{number:04}"));
                assert!(store.key_values().delete(&plugin("hello"), &name).await.unwrap());
            }
        })
        .await;
        store.close().await;
        // Opening examines the file.
        open(&path).open().await.unwrap().close().await;
    });
}

// Promises: STATE-19
#[test]
fn on_a_full_disk_the_store_is_full_until_there_is_room() {
    let test = "on_a_full_disk_the_store_is_full_until_there_is_room";
    let directory = tempfile::tempdir().unwrap();
    let Some(_disk) = Disk::mount(directory.path()) else {
        return skip(test, "only root can mount a small disk");
    };
    let outside = tempfile::tempdir().unwrap();
    let copy = outside.path().join("copy.db");
    let ballast = directory.path().join("ballast");
    fs::write(&ballast, vec![0; 3 * 1024 * 1024]).unwrap();
    let path = directory.path().join("state/state.db");
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        fill(&store, async |store| {
            // Neither a copy on the full disk nor a restore, which keeps what is there, leaves anything half.
            let backup = store.backup(&directory.path().join("copy.db")).await.unwrap_err();
            assert!(matches!(backup, Error::Full(_)), "{backup:?}");
            store.backup(&copy).await.unwrap();
            let before = store.key_values().usage(&plugin("hello")).await.unwrap();
            let restore = store.restore(&copy, false).await.unwrap_err();
            assert!(matches!(restore, Error::Full(_)), "{restore:?}");
            assert_eq!(store.key_values().usage(&plugin("hello")).await.unwrap(), before);
            let files = fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().file_name());
            let files: Vec<_> = files
                .filter(|file| {
                    !["state.db", "state.db-wal", "state.db-shm", "state.db.lock"]
                        .contains(&file.to_str().unwrap())
                })
                .collect();
            assert!(files.is_empty(), "{files:?}");
            fs::remove_file(&ballast).unwrap();
        })
        .await;
        store.close().await;
        open(&path).open().await.unwrap().close().await;
    });
}

// Promises: STATE-3
#[test]
fn writers_at_once_share_commits() {
    let (_directory, path) = scratch();
    runtime().block_on(async {
        let store = open(&path).open().await.unwrap();
        let writing: Vec<_> = (0..64)
            .map(|writer| {
                let db = store.key_values();
                tokio::spawn(async move {
                    for number in 0..10 {
                        let name = key(&format!("{writer}/{number}"));
                        db.set(&namespace("hello"), &name, vec![1]).await.unwrap();
                    }
                })
            })
            .collect();
        for one in writing {
            one.await.unwrap();
        }
        let Counters { writes, commits } = store.counters();
        assert!(writes == 640 && commits < 640, "{commits} commits for {writes} writes");
        store.close().await;
    });
}

#[test]
fn a_file_that_somebody_holds_is_busy_and_then_is_not() {
    let (_directory, path) = scratch();
    runtime().block_on(async {
        let store = open(&path).busy_timeout(Duration::from_millis(20)).open().await.unwrap();
        let (db, hello) = (store.key_values(), namespace("hello"));
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let busy = db.set(&hello, &key("a"), vec![1]).await.unwrap_err();
        assert!(matches!(busy, Error::Busy(_)) && busy.is_retryable(), "{busy:?}");
        assert_eq!(db.get(&hello.plugin, &key("a")).await.unwrap(), None, "reading goes on");
        other.execute_batch("COMMIT").unwrap();
        db.set(&hello, &key("a"), vec![1]).await.unwrap();
        store.close().await;
    });
}

struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(at: &'a Path) -> Option<Self> {
        use nix::mount::{MsFlags, mount};
        const NONE: Option<&str> = None;
        // Seen by this thread and those that it starts: the store's, but no other program's.
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).ok()?;
        mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE).ok()?;
        mount(Some("none"), at, Some("tmpfs"), MsFlags::empty(), Some("size=8m")).ok().map(|()| Self(at))
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        // Lazily: what is still open goes with its process.
        let _gone = nix::mount::umount2(self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}
