use talon_store::{Engine, Store, StoreOptions};

use super::*;

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

async fn has(images: &ImageStore, session: &str, of: &[&ImageWithBytes]) -> Vec<bool> {
    let wanted: Vec<&Image> = of.iter().map(|(image, _)| image).collect();
    let shown = ImageSource::load(images, session, &wanted).await;
    of.iter().map(|(image, bytes)| shown.bytes_of(image).is_some_and(|found| *found == **bytes)).collect()
}

// Promises: AGENT-162
#[tokio::test]
async fn images_survive_a_restart_and_go_with_their_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let (small, large) = (image(1, 100), image(2, 3 * MAX_VALUE_BYTES - 5));
    let kept = store(&directory).await;
    let images = ImageStore::new(kept.key_values(), MediaKeys::default()).expect("images");
    images.add("one", &[small.clone(), large.clone()]).await.expect("stored");
    images.add("two", std::slice::from_ref(&small)).await.expect("stored");
    kept.close().await;

    let kept = store(&directory).await;
    let images = ImageStore::new(kept.key_values(), MediaKeys::default()).expect("images");
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
    let images = ImageStore::new(kept.key_values(), keys).expect("images");
    let all: Vec<ImageWithBytes> = (1..=3).map(|number| image(number, 1_000)).collect();
    for one in &all {
        images.add("one", std::slice::from_ref(one)).await.expect("stored");
        // Of the same millisecond the order is that of the digests.
        let since = Timestamp::now();
        while Timestamp::now() <= since {
            std::hint::spin_loop();
        }
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
    let images = ImageStore::new(kept.key_values(), MediaKeys::default()).expect("images");
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
