use std::fs::{FileTimes, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::*;

/// A file, open for reading; `None` if the test's file system has no reliable ctime.
fn file(dir: &tempfile::TempDir, content: &[u8]) -> Option<(PathBuf, File)> {
    let path = dir.path().join("program");
    std::fs::write(&path, content).unwrap();
    let file = File::open(&path).unwrap();
    if !has_reliable_ctime(&file) {
        println!("SKIPPED: {} is on a file system that is not relied on", path.display());
        return None;
    }
    Some((path, file))
}

/// A cache that also keeps digests of files that changed just now.
fn eager() -> DigestCache {
    DigestCache { min_age: Duration::ZERO, ..DigestCache::default() }
}

fn remembered(known: &DigestCache) -> usize {
    known.digests.lock().len()
}

#[test]
fn what_was_read_is_not_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let Some((_, file)) = file(&dir, b"a program") else { return };
    let known = eager();
    let digest = known.digest(&file).unwrap();
    assert_eq!(digest, digest::of_file(&file).unwrap());
    // A digest that was never in the file can only come from the cache.
    let print = FileStamp::of(&file).unwrap();
    known.digests.lock().insert(print, "remembered".into());
    assert_eq!(known.digest(&file).unwrap(), "remembered");
}

// Promises: DISC-19
#[test]
fn a_change_shows_whatever_is_said_of_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let Some((path, file)) = file(&dir, b"a program") else { return };
    let known = eager();
    let before = FileStamp::of(&file).unwrap();
    let digest = known.digest(&file).unwrap();
    assert_eq!(remembered(&known), 1);
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    // Until the clock has advanced. This is why recently changed files are not cached.
    while FileStamp::of(&file).unwrap().changed == before.changed {
        writer.seek(SeekFrom::Start(0)).unwrap();
        writer.write_all(b"A program").unwrap();
        writer.set_times(FileTimes::new().set_modified(modified)).unwrap();
    }
    let after = FileStamp::of(&file).unwrap();
    assert_eq!((after.bytes, after.modified, after.inode), (before.bytes, before.modified, before.inode));
    let found = known.digest(&file).unwrap();
    assert_ne!(found, digest);
    assert_eq!(found, digest::of_file(&file).unwrap());
}

// Promises: DISC-19
#[test]
fn what_changed_just_now_is_read_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let Some((_, file)) = file(&dir, b"a program") else { return };
    let known = DigestCache::default();
    known.digest(&file).unwrap();
    assert_eq!(remembered(&known), 0);
}

// Promises: DISC-19
#[test]
fn a_file_system_in_memory_is_not_relied_on() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        println!("SKIPPED: there is no /dev/shm");
        return;
    };
    let path = dir.path().join("program");
    std::fs::write(&path, b"a program").unwrap();
    let known = eager();
    known.digest(&File::open(&path).unwrap()).unwrap();
    assert_eq!(remembered(&known), 0);
}

#[test]
fn there_is_a_bound() {
    let dir = tempfile::tempdir().unwrap();
    let Some((_, file)) = file(&dir, b"a program") else { return };
    let known = eager();
    let print = FileStamp::of(&file).unwrap();
    for inode in 0..MAX_CACHED as u64 {
        known.digests.lock().insert(FileStamp { device: u64::MAX, inode, ..print }, "other".into());
    }
    known.digest(&file).unwrap();
    assert_eq!(remembered(&known), 1);
}
