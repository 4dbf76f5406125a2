use std::os::unix::fs::PermissionsExt as _;

use talon_store::{Engine, Expected, Key, Namespace, NewMessage, NewSession, Role, Store, StoreOptions};

use super::*;

async fn store(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("private").join("agent.db");
    StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store")
}

async fn session(store: &Store, texts: &[&str]) -> Session {
    let sessions = store.sessions();
    let new = NewSession { sender: "ada".to_owned(), channel: "cli".to_owned(), ..NewSession::default() };
    let id = sessions.create(new).await.expect("created").id;
    let messages = texts.iter().map(|text| NewMessage::text(Role::User, *text)).collect();
    sessions.append(id, Expected::Any, messages).await.expect("appended");
    sessions.get(id).await.expect("read").expect("there")
}

// Promises: GW-224
#[tokio::test]
async fn a_session_is_written_for_its_owner_alone_and_replaces_what_a_killed_process_left() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&directory).await;
    let session = session(&store, &["hello\nworld", "and more"]).await;
    let plugin = PluginId::new(MEDIA_NAMESPACE).expect("an id");
    let key = Key::new(format!("{}/1780000000000.{}/00", session.id, "a".repeat(64))).expect("a key");
    let key_values = store.key_values();
    key_values.set(&Namespace::of(plugin), &key, vec![0, 255]).await.expect("stored");
    let sessions = store.sessions();
    let source = ExportSource { sessions: &*sessions, key_values: &*key_values };
    let exports = ExportDirectory::new(directory.path().join("exports"));
    assert_eq!(exports.usage().await.expect("counted"), ExportUsage::default());
    let mut usage = ExportUsage::default();
    exports.write(&source, &session, &mut usage, 1 << 20).await.expect("written");
    let path = directory.path().join(exports.file_of(session.id));
    let written = std::fs::read_to_string(&path).expect("a file");
    assert!(written.contains("hello\n") && written.contains("and more"), "{written}");
    assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    let media = directory.path().join("exports").join(media_path(session.id));
    assert!(std::fs::read_to_string(media).expect("a file").contains("!!binary"));
    assert_eq!(exports.usage().await.expect("counted"), usage);
    assert_eq!(usage.files, 2);
    // Another one takes its place, and what was left unfinished goes.
    let unfinished = path.with_file_name(format!(".{}.yaml{UNFINISHED}", session.id));
    std::fs::write(&path, "half").expect("written");
    std::fs::write(&unfinished, "half").expect("written");
    let mut usage = exports.usage().await.expect("counted");
    assert!(!unfinished.exists());
    exports.write(&source, &session, &mut usage, 1 << 20).await.expect("written");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), written);
    assert_eq!(exports.usage().await.expect("counted"), usage);
    // A sender who is forgotten leaves no file, and others keep theirs.
    assert_eq!(exports.forget("ad").await.expect("looked at"), 0);
    assert_eq!(exports.forget("ada").await.expect("deleted"), 1);
    assert_eq!(exports.usage().await.expect("counted"), ExportUsage::default());
}

// Promises: GW-225
#[tokio::test]
async fn there_are_never_more_bytes_than_the_operator_wants() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&directory).await;
    let session = session(&store, &[&"x".repeat(5000)]).await;
    let (sessions, key_values) = (store.sessions(), store.key_values());
    let source = ExportSource { sessions: &*sessions, key_values: &*key_values };
    let exports = ExportDirectory::new(directory.path().join("exports"));
    let mut usage = ExportUsage::default();
    let error = exports.write(&source, &session, &mut usage, 4000).await.expect_err("too much");
    assert!(error.to_string().contains("agent.sessions.export_bytes"), "{error}");
    assert_eq!((usage, exports.usage().await.expect("counted")), Default::default());
}

// Promises: GW-225
#[tokio::test]
async fn nothing_of_a_session_stays_that_could_not_be_written_or_whose_files_were_moved_away() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&directory).await;
    let session = session(&store, &[&"x".repeat(5000)]).await;
    let plugin = PluginId::new(MEDIA_NAMESPACE).expect("an id");
    let key = Key::new(format!("{}/1780000000000.{}/00", session.id, "a".repeat(64))).expect("a key");
    let (sessions, key_values) = (store.sessions(), store.key_values());
    key_values.set(&Namespace::of(plugin), &key, vec![0, 255]).await.expect("stored");
    let source = ExportSource { sessions: &*sessions, key_values: &*key_values };
    let exports = ExportDirectory::new(directory.path().join("exports"));
    let mut usage = ExportUsage::default();
    // Nor do images stay that an earlier process wrote without their session, if not even new ones can be written.
    exports.create().await.expect("created");
    let early = directory.path().join("exports").join(media_path(session.id));
    std::fs::write(&early, "an image").expect("written");
    let mut counted = exports.usage().await.expect("counted");
    assert_eq!(counted, ExportUsage { files: 1, bytes: 8 });
    exports.write(&source, &session, &mut counted, 1).await.expect_err("too much");
    assert_eq!((early.exists(), counted), (false, ExportUsage::default()));
    // There is room for the image alone.
    exports.write(&source, &session, &mut usage, 4000).await.expect_err("too much");
    assert_eq!((usage, exports.usage().await.expect("counted")), Default::default());
    // Nor do images stay that have no session, or that are unfinished, whosever they are; others keep theirs.
    exports.write(&source, &session, &mut usage, 1 << 20).await.expect("written");
    let other = SessionId::generate();
    let root = directory.path().join("exports");
    std::fs::write(root.join(media_path(other)), "an image").expect("written");
    std::fs::write(root.join(format!("media/.{other}.yaml{UNFINISHED}")), "half").expect("written");
    // What was moved away while it is looked at is like a link to nothing.
    std::os::unix::fs::symlink("elsewhere", root.join(session_path(SessionId::generate()))).expect("a link");
    assert_eq!(exports.forget("bob").await.expect("looked at"), 0);
    assert!(!root.join(media_path(other)).exists() && root.join(media_path(session.id)).exists());
    assert_eq!(std::fs::read_dir(root.join("media")).expect("read").count(), 1);
    assert_eq!(exports.forget("ada").await.expect("deleted"), 1);
    assert!(!root.join(media_path(session.id)).exists());
}
