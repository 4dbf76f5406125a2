//! Databases that are not opened, and what is said about them. None of them is changed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use talon_proto::state::{Open, open};

use crate::plugin::set;
use crate::support::{Place, Service};

/// Makes a database and closes it.
async fn used(place: &Place) {
    let mut service = Service::at(place).await;
    let mut plugin = service.plugin(place, 1, "hello").await;
    set(&mut plugin, "a", &[7; 100_000]).await.unwrap();
    service.let_go();
    service.ended();
}

async fn refused(place: &Place, says: &[&str]) {
    let before = fs::read(place.database()).unwrap();
    let (refused, status) = Service::refused(place, place.open()).await;
    assert_eq!(status.code(), Some(1));
    assert!(!refused.retryable, "{refused:?}");
    for says in says {
        assert!(refused.message.contains(says), "{refused:?}");
    }
    assert!(fs::read(place.database()).unwrap() == before, "it was changed");
}

fn shorten(path: &Path, bytes: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[tokio::test]
async fn a_truncated_database_is_refused_with_the_restore_command() {
    let place = Place::new();
    used(&place).await;
    let path = place.database();
    let name = path.to_str().unwrap();
    for left in [fs::metadata(&path).unwrap().len() / 2, 700, 0] {
        shorten(&path, left);
        refused(&place, &[name, "is damaged", "talon restore"]).await;
    }
}

#[tokio::test]
async fn another_programs_database_is_refused() {
    let place = Place::new();
    used(&place).await;
    fs::remove_file(place.database()).unwrap();
    let other = rusqlite::Connection::open(place.database()).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(other);
    refused(&place, &["another program"]).await;
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let place = Place::new();
    used(&place).await;
    let newer = rusqlite::Connection::open(place.database()).unwrap();
    newer.pragma_update(None, "user_version", 999).unwrap();
    drop(newer);
    refused(&place, &["schema version 999", "newer Talon"]).await;
}

#[tokio::test]
async fn a_database_in_use_is_refused_for_now() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let (refused, status) = Service::refused(&place, place.open()).await;
    assert_eq!(status.code(), Some(1));
    assert!(refused.retryable && refused.message.contains("in use"), "{refused:?}");
    assert!(refused.message.contains(&service.child.id().to_string()), "{refused:?}");
}

#[tokio::test]
async fn a_directory_that_others_can_open_is_refused_with_the_fix() {
    let place = Place::new();
    used(&place).await;
    fs::set_permissions(place.path("state"), fs::Permissions::from_mode(0o750)).unwrap();
    refused(&place, &["chmod 700"]).await;
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_without_repeating_it() {
    let place = Place::new();
    let engine =
        Some(open::Engine::Postgres(talon_proto::state::Postgres { url: "mysql://u:hunter2@x".into() }));
    let (refused, _) = Service::refused(&place, Open { engine, ..place.open() }).await;
    assert!(!refused.message.contains("hunter2") && !refused.retryable, "{refused:?}");
}
