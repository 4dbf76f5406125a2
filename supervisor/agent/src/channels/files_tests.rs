use talon_store::limits::MAX_VALUE_BYTES;
use talon_store::{Engine, MEDIA_NAMESPACE, NewSession, PageRequest, PluginId, Session, Store, StoreOptions};

use super::super::inbound::{InboundMessage, MessageSource};
use super::super::routing::Route;
use super::super::store::forget_sender;
use super::*;
use crate::media::ImageWithBytes;

fn text(name: &str, bytes: usize) -> Media {
    Media { data: vec![b'x'; bytes], name: name.to_owned() }
}

// Promises: GW-229
#[test]
fn what_does_not_fit_is_left_out_and_said_with_the_key() {
    let keys = MediaKeys { files: 2, file_bytes: 1500, request_bytes: 2000, ..MediaKeys::default() };
    let mut fetched = FetchedFiles::default();
    fetched.add(text("a.txt", 1200), &keys).expect("it fits");
    for (file, key) in
        [(text("b.txt", 1000), "agent.media.request_bytes"), (text("c.txt", 1600), "agent.media.file_bytes")]
    {
        assert!(fetched.add(file, &keys).expect_err("too much").contains(key), "{key}");
    }
    fetched.add(text("d.txt", 700), &keys).expect("it fits");
    assert!(fetched.add(text("e.txt", 1), &keys).expect_err("too many").contains("agent.media.files"));
    assert_eq!(fetched.media.files.len(), 2);
    let mut stored = StoredFiles::default();
    assert!(stored.note().is_empty() && stored.notice().is_none());
    stored.left_out.push("e.txt: too many".to_owned());
    assert_eq!(stored.note(), "\n\n(A file was not passed on: e.txt: too many.)");
    assert_eq!(stored.notice().as_deref(), Some("⚠️ Not passed on: e.txt: too many."));
}

/// A session of Ada's, and a message of hers that has a row.
async fn begun(store: &Store) -> (Session, PendingMessage) {
    let new =
        NewSession { sender: "ada".to_owned(), channel: "telegram".to_owned(), ..NewSession::default() };
    let session = store.sessions().create(new).await.expect("created");
    let said = InboundMessage {
        id: "u/7".to_owned(),
        speaker: MessageSource {
            conversation: "7".to_owned(),
            sender_id: "7".to_owned(),
            sender_name: "Ada".to_owned(),
            group_id: None,
        },
        text: "look".to_owned(),
        files: Vec::new(),
        mentioned: false,
    };
    let route = Route { owner: "ada".to_owned(), member: None };
    let message = PendingMessage::new("1".to_owned(), "telegram", said, route);
    ChannelStore::new(store.key_values()).put(&message).await.expect("stored");
    (session, message)
}

async fn store(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("private").join("agent.db");
    StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store")
}

/// How many pieces of images and files there are.
async fn pieces(store: &Store) -> usize {
    let plugin = PluginId::new(MEDIA_NAMESPACE).expect("an id");
    store.key_values().keys(&plugin, "", &PageRequest::default()).await.expect("read").items.len()
}

/// A GIF with so many bytes.
fn image(name: &str, bytes: usize) -> ImageWithBytes {
    let mut data = b"GIF89a\x10\0\x10\0\0\0\0".to_vec();
    data.resize(bytes, 7);
    (Image::read(&data, name).expect("an image"), data.into())
}

// Promises: GW-229
#[tokio::test]
async fn what_is_forgotten_while_its_files_are_fetched_is_not_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&directory).await;
    let (session, message) = begun(&store).await;
    let media = MediaStore::new(store.key_values(), MediaKeys::default()).expect("a store of media");
    let (sessions, rows) = (store.sessions(), ChannelStore::new(store.key_values()));
    let files = FileStore { media: &media, sessions: &*sessions, rows: &rows };
    let fetched = || {
        let mut fetched = FetchedFiles::default();
        fetched.add(text("a.txt", 10), &MediaKeys::default()).expect("it fits");
        fetched
    };
    assert!(files.put(&message, session.id, &mut fetched()).await.expect("stored"));
    assert_eq!(pieces(&store).await, 2);
    media.forget(&session.id.to_string()).await.expect("forgotten");
    // The message.
    forget_sender(store.key_values(), "ada").await.expect("forgotten");
    assert!(!files.put(&message, session.id, &mut fetched()).await.expect("looked at"));
    // The session.
    rows.put(&message).await.expect("stored");
    sessions.delete(session.id).await.expect("deleted");
    assert!(!files.put(&message, session.id, &mut fetched()).await.expect("looked at"));
    assert_eq!(pieces(&store).await, 0);
}

// Promises: GW-229
#[tokio::test]
async fn what_there_is_no_room_for_is_named_and_the_rest_is_passed_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&directory).await;
    let (session, message) = begun(&store).await;
    // There is room for a piece of a large one, of which nothing stays.
    let keys = MediaKeys { total_bytes: MAX_VALUE_BYTES as u64 + 2_000, ..MediaKeys::default() };
    let media = MediaStore::new(store.key_values(), keys).expect("a store of media");
    let (sessions, rows) = (store.sessions(), ChannelStore::new(store.key_values()));
    let files = FileStore { media: &media, sessions: &*sessions, rows: &rows };
    let mut fetched = FetchedFiles::default();
    fetched.left_out.push("x.bin: it is too large".to_owned());
    fetched.media.images = vec![image("a.gif", 100), image("b.gif", 2 * MAX_VALUE_BYTES)];
    fetched.add(text("a.txt", 50), &keys).expect("it fits");
    assert!(files.put(&message, session.id, &mut fetched).await.expect("stored"));
    let names: Vec<&str> = fetched.media.images.iter().map(|(image, _)| image.name.as_str()).collect();
    assert_eq!((names, fetched.media.files.len()), (vec!["a.gif"], 1));
    assert_eq!(fetched.left_out, ["x.bin: it is too large", format!("b.gif: {NO_ROOM}").as_str()]);
    // One of the image, and two of the file: its bytes and what is known of it.
    assert_eq!(pieces(&store).await, 3);
}
