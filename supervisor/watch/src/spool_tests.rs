use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use proptest::prelude::*;

use super::*;

const NOW: u64 = 10 * KEPT_MS;

fn observation(id: usize) -> Observation {
    Observation { id: id.to_string(), occurred_unix_ms: NOW, ..Observation::default() }
}

impl Spool {
    /// Puts another file in the place of this one, such as one that takes nothing; returns this one.
    pub(crate) fn exchange_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }
}

fn ids(rest: &SpooledRest) -> Vec<String> {
    rest.observations.iter().map(|seen| seen.id.clone()).collect()
}

// Promises: SHADOW-39
#[test]
fn what_waits_is_this_users_alone_and_a_day_old_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("state/talon");
    let (mut spool, rest) = Spool::open(&place, NOW).unwrap();
    assert_eq!(rest, SpooledRest::default());
    assert!(Spool::open(&place, NOW).is_err(), "it is one watcher's");
    for id in 0..3 {
        let occurred_unix_ms = if id == 0 { NOW - KEPT_MS - 1 } else { NOW };
        spool.added(&Observation { occurred_unix_ms, ..observation(id) }).unwrap();
    }
    for path in [place.clone(), place.join(FILE)] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
    }
    drop(spool);
    let (mut spool, rest) = Spool::open(&place, NOW).unwrap();
    assert_eq!((ids(&rest), rest.dropped), (vec!["1".to_owned(), "2".to_owned()], 1));
    // A clock that was set back makes nothing older.
    drop(spool);
    let (again, rest) = Spool::open(&place, 5).unwrap();
    assert_eq!(rest.observations.len(), 2);
    spool = again;
    spool.taken(2, 1, std::iter::empty(), 0).unwrap();
    assert_eq!(place.join(FILE).metadata().unwrap().size(), 0, "nothing is left of what was sent");
}

#[test]
fn no_link_is_followed_and_other_bytes_are_none() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("other"), "text").unwrap();
    std::os::unix::fs::symlink(dir.path().join("other"), dir.path().join(FILE)).unwrap();
    assert!(Spool::open(dir.path(), NOW).is_err());
    std::fs::remove_file(dir.path().join(FILE)).unwrap();
    std::fs::write(dir.path().join(FILE), [ADDED; 5000]).unwrap();
    let (_spool, rest) = Spool::open(dir.path(), NOW).unwrap();
    assert_eq!(rest, SpooledRest::default());
}

// Promises: SHADOW-39
#[test]
fn a_long_file_is_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (mut spool, _) = Spool::open(dir.path(), NOW).unwrap();
    let waiting = Observation { excerpt: "x".repeat(2048), ..observation(7) };
    let mut before = 0;
    while spool.bytes >= before {
        before = spool.bytes;
        spool.added(&waiting).unwrap();
        spool.taken(1, 0, [waiting.clone()].iter(), 0).unwrap();
    }
    assert!(before <= FILE_BYTES + 4096 && spool.bytes < 4096, "{before} {}", spool.bytes);
    drop(spool);
    assert_eq!(ids(&Spool::open(dir.path(), NOW).unwrap().1), ["7"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Killed at any byte of what was written, it has what was written whole.
    // Promises: SHADOW-38
    #[test]
    fn whatever_is_cut_what_was_written_before_is_there(
        steps in prop::collection::vec((1usize..5, 0usize..4), 1..8), cut in 0.0f64..1.0
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (mut spool, _) = Spool::open(dir.path(), NOW).unwrap();
        let (mut waiting, mut next) = (std::collections::VecDeque::new(), 0);
        // What was there after each record.
        let mut states = vec![(0, Vec::new())];
        for (added, taken) in steps {
            for _ in 0..added {
                spool.added(&observation(next)).unwrap();
                waiting.push_back(observation(next));
                next += 1;
                states.push((spool.bytes, waiting.iter().map(|one| one.id.clone()).collect()));
            }
            // One is left, so that the file is not emptied.
            let taken = taken.min(waiting.len() - 1);
            waiting.drain(..taken);
            spool.taken(taken, 0, waiting.iter(), 0).unwrap();
            states.push((spool.bytes, waiting.iter().map(|one| one.id.clone()).collect()));
        }
        let length = (spool.bytes as f64 * cut) as u64;
        drop(spool);
        File::options().write(true).open(dir.path().join(FILE)).unwrap().set_len(length).unwrap();
        let (_, expected) = states.iter().rev().find(|(bytes, _)| *bytes <= length).unwrap();
        let (_spool, rest) = Spool::open(dir.path(), NOW).unwrap();
        prop_assert_eq!(&ids(&rest), expected);
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        replay(&bytes);
    }
}
