use talon_llm::model::Image;
use talon_store::{Engine, Store, StoreOptions};

use super::*;
use crate::driver::{AttachmentSource, ImageSource};
use crate::media::Attachment;

async fn store(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("private").join("agent.db");
    StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store")
}

/// A GIF with so many bytes; the number makes it another one.
fn image(number: u8, bytes: usize) -> ImageWithBytes {
    let mut data = [b"GIF89a".as_slice(), &[16, 0, number, 0, 0, 0, 0]].concat();
    data.resize(bytes, number);
    (Image::read(&data, "a.gif").expect("an image"), data.into())
}

async fn has(images: &MediaStore, session: &str, of: &[&ImageWithBytes]) -> Vec<bool> {
    let wanted: Vec<&Image> = of.iter().map(|(image, _)| image).collect();
    let shown = ImageSource::load(images, session, &wanted).await;
    of.iter().map(|(image, bytes)| shown.bytes_of(image).is_some_and(|found| *found == **bytes)).collect()
}

/// Of the same millisecond the order is that of the digests.
fn next_millisecond() {
    let since = Timestamp::now();
    while Timestamp::now() <= since {
        std::hint::spin_loop();
    }
}

// Promises: AGENT-162
#[tokio::test]
async fn images_survive_a_restart_and_go_with_their_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let (small, large) = (image(1, 100), image(2, 3 * MAX_VALUE_BYTES - 5));
    let kept = store(&directory).await;
    let images = MediaStore::new(kept.key_values(), MediaKeys::default()).expect("images");
    images.add("one", &[small.clone(), large.clone()]).await.expect("stored");
    images.add("two", std::slice::from_ref(&small)).await.expect("stored");
    kept.close().await;

    let kept = store(&directory).await;
    let images = MediaStore::new(kept.key_values(), MediaKeys::default()).expect("images");
    assert_eq!(has(&images, "one", &[&small, &large]).await, [true, true]);
    assert_eq!(has(&images, "two", &[&small, &large]).await, [true, false]);
    images.forget("one").await.expect("forgotten");
    assert_eq!(has(&images, "one", &[&small, &large]).await, [false, false]);
    assert_eq!(has(&images, "two", &[&small]).await, [true]);
}

// Promises: AGENT-162
#[tokio::test]
async fn the_oldest_of_a_session_make_room_and_all_sessions_have_a_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let keys = MediaKeys { session_bytes: 2_500, total_bytes: 5_000, ..MediaKeys::default() };
    let images = MediaStore::new(kept.key_values(), keys).expect("images");
    let all: Vec<ImageWithBytes> = (1..=3).map(|number| image(number, 1_000)).collect();
    for one in &all {
        images.add("one", std::slice::from_ref(one)).await.expect("stored");
        next_millisecond();
    }
    assert_eq!(has(&images, "one", &[&all[0], &all[1], &all[2]]).await, [false, true, true]);
    // What is there is not stored again.
    images.add("one", &all[1..]).await.expect("stored");
    images.add("two", &all[..2]).await.expect("stored");
    let full = images.add("three", &all).await.expect_err("no room");
    assert!(matches!(full, Error::Quota { .. }), "{full}");
}

// Promises: AGENT-162
#[tokio::test]
async fn what_is_too_old_is_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let images = MediaStore::new(kept.key_values(), MediaKeys::default()).expect("images");
    let one = image(1, 100);
    images.add("one", std::slice::from_ref(&one)).await.expect("stored");
    let day = Duration::from_secs(24 * 60 * 60);
    let later = |days: u32| {
        Timestamp::from_millis(Timestamp::now().as_millis() + i64::from(days) * day.as_millis() as i64)
    };
    assert_eq!(images.expire(later(29)).await.expect("looked"), 0);
    images.configure(MediaKeys { keep_days: 0, ..MediaKeys::default() });
    assert_eq!(images.expire(later(9_999)).await.expect("looked"), 0);
    images.configure(MediaKeys::default());
    assert_eq!(images.expire(later(31)).await.expect("looked"), 1);
    assert_eq!(has(&images, "one", &[&one]).await, [false]);
}

fn file(name: &str, bytes: Vec<u8>) -> AttachmentWithBytes {
    (Attachment::of(&bytes, name), bytes.into())
}

// Promises: AGENT-167
#[tokio::test]
async fn files_are_listed_read_and_go_with_their_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let media = MediaStore::new(kept.key_values(), MediaKeys::default()).expect("a store");
    let (picture, empty) = (image(1, 100), file("empty", Vec::new()));
    let large = file("large.bin", (0..2 * MAX_VALUE_BYTES + 7).map(|at| (at % 251) as u8).collect());
    media.add("one", std::slice::from_ref(&picture)).await.expect("stored");
    media.add_files("one", &[large.clone(), empty.clone()]).await.expect("stored");
    let mut listed = AttachmentSource::list(&media, "one").await;
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(listed, [empty.0.clone(), large.0.clone()]);
    for (about, bytes) in [&large, &empty] {
        let read = AttachmentSource::load(&media, "one", about).await.expect("read");
        assert_eq!(read.as_deref(), Some(&**bytes), "{about}");
    }
    assert_eq!(has(&media, "one", &[&picture]).await, [true]);
    assert_eq!(AttachmentSource::load(&media, "two", &large.0).await, Ok(None));
    media.forget("one").await.expect("forgotten");
    assert_eq!(AttachmentSource::list(&media, "one").await, []);
    assert_eq!(AttachmentSource::load(&media, "one", &large.0).await, Ok(None));
}

// Promises: AGENT-167
#[tokio::test]
async fn the_oldest_files_of_a_session_make_room_and_images_stay() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let media = MediaStore::new(kept.key_values(), MediaKeys::default()).expect("a store");
    let picture = image(1, 100);
    media.add("one", std::slice::from_ref(&picture)).await.expect("stored");
    let all: Vec<AttachmentWithBytes> =
        (0..=MAX_SESSION_FILES).map(|number| file("a", number.to_string().into_bytes())).collect();
    media.add_files("one", &all[..1]).await.expect("stored");
    next_millisecond();
    media.add_files("one", &all[1..]).await.expect("stored");
    let listed = AttachmentSource::list(&media, "one").await;
    assert_eq!(listed.len(), MAX_SESSION_FILES);
    assert!(!listed.contains(&all[0].0));
    assert_eq!(has(&media, "one", &[&picture]).await, [true]);
}

// Promises: GW-303
#[tokio::test]
async fn what_came_with_a_refused_request_goes_unless_another_one_has_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let media = MediaStore::new(kept.key_values(), MediaKeys::default()).expect("a store");
    let (old, new, shared) = (image(1, 100), image(2, 100), image(3, 100));
    let text = file("a.txt", b"a report".to_vec());
    media.add("one", std::slice::from_ref(&old)).await.expect("stored");
    let all = [old.clone(), new.clone(), shared.clone()];
    let refused = media.add_request("one", &all, std::slice::from_ref(&text)).await.expect("stored");
    assert_eq!(has(&media, "one", &[&old, &new, &shared]).await, [true, true, true]);
    // Of a turn that begins meanwhile, with one of them.
    let begun = media.add_request("one", std::slice::from_ref(&shared), &[]).await.expect("stored");
    drop(begun);
    refused.take_back().await.expect("deleted");
    assert_eq!(has(&media, "one", &[&old, &new, &shared]).await, [true, false, true]);
    assert_eq!(AttachmentSource::list(&media, "one").await, []);
    // Over a channel it came as well.
    let first = media.add_request("one", std::slice::from_ref(&new), &[]).await.expect("stored");
    media.add("one", std::slice::from_ref(&new)).await.expect("it is there");
    first.take_back().await.expect("deleted");
    assert_eq!(has(&media, "one", &[&new]).await, [true]);
    assert!(media.undecided.lock().is_empty());
}

// Promises: GW-303
#[tokio::test]
async fn a_refused_request_takes_no_room_from_what_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    // There is room for what two requests have, and for no more of all sessions.
    let keys = MediaKeys { session_bytes: 2_500, total_bytes: 2_500, ..MediaKeys::default() };
    let media = MediaStore::new(kept.key_values(), keys).expect("a store");
    let all: Vec<ImageWithBytes> = (1..=4).map(|number| image(number, 1_000)).collect();
    for one in &all[..2] {
        media.add("one", std::slice::from_ref(one)).await.expect("stored");
        next_millisecond();
    }
    for _ in 0..3 {
        let refused = media.add_request("one", &all[2..3], &[]).await.expect("stored");
        refused.take_back().await.expect("deleted");
    }
    let of_all = [&all[0], &all[1], &all[2], &all[3]];
    assert_eq!(has(&media, "one", &of_all).await, [true, true, false, false]);
    // What waits for its turn has room made for it when that begins.
    let first = media.add_request("one", &all[2..3], &[]).await.expect("stored");
    assert_eq!(has(&media, "one", &of_all).await, [true, true, true, false]);
    first.keep().await.expect("kept");
    assert_eq!(has(&media, "one", &of_all).await, [false, true, true, false]);
    next_millisecond();
    // One that is cut off leaves too much, until more is kept.
    drop(media.add_request("one", &all[..1], &[]).await.expect("stored"));
    next_millisecond();
    media.add_request("one", &all[3..], &[]).await.expect("stored").keep().await.expect("kept");
    assert_eq!(has(&media, "one", &of_all).await, [true, false, false, true]);
}

// Promises: GW-303
#[tokio::test]
async fn of_a_request_that_cannot_be_stored_nothing_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let keys = MediaKeys { total_bytes: 2_500, ..MediaKeys::default() };
    let media = MediaStore::new(kept.key_values(), keys).expect("a store");
    let all: Vec<ImageWithBytes> = (1..=3).map(|number| image(number, 1_000)).collect();
    let full = media.add_request("one", &all, &[]).await.err().expect("no room for the third");
    assert!(matches!(full, Error::Quota { .. }), "{full}");
    let large = file("large.bin", vec![7; 2_000]);
    let full = media.add_request("one", &all[..1], &[large]).await.err().expect("no room for the file");
    assert!(matches!(full, Error::Quota { .. }), "{full}");
    assert!(media.stored("").await.expect("read").is_empty());
    assert!(media.undecided.lock().is_empty());
}

// Promises: GW-303
#[tokio::test]
async fn a_request_that_is_cut_off_at_any_moment_leaves_nothing_undecided() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let media = MediaStore::new(kept.key_values(), MediaKeys::default()).expect("a store");
    for number in 1..=10_u8 {
        let two = [image(number, MAX_VALUE_BYTES + 1), image(100 + number, 100)];
        let most = Duration::from_micros(500 * u64::from(number));
        let _ = tokio::time::timeout(most, media.add_request("one", &two, &[])).await;
        assert!(media.undecided.lock().is_empty(), "after {most:?}");
    }
}
