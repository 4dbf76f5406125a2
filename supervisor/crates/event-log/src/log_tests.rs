use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::Page;

const FIRST: u64 = 1_000;

fn settings(dir: &Path) -> Settings {
    Settings { dir: dir.to_owned(), max_bytes: 1 << 20, max_events: 1_000, first_number: FIRST }
}

fn open(settings: &Settings) -> EventLog {
    let opened = EventLog::open(settings).unwrap();
    assert_eq!(opened.findings, Vec::<String>::new());
    opened.log
}

fn event(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

type NumberedEvents = Vec<(u64, Vec<u8>)>;

/// All events after a number, and the ranges that are missing.
fn read_all(reader: &EventReader, mut after: u64) -> (NumberedEvents, Vec<(u64, u64)>) {
    let (mut events, mut missing) = (Vec::new(), Vec::new());
    loop {
        let page = reader.page_after(after).unwrap();
        missing.extend(page.missing.map(|range| (*range.start(), *range.end())));
        let Some((last, _)) = page.events.last() else { return (events, missing) };
        after = *last;
        events.extend(page.events);
    }
}

fn segments(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn numbers_go_on_over_openings_and_what_was_read_stays() {
    let dir = TempDir::new().unwrap();
    let settings = settings(dir.path());
    let mut expected = Vec::new();
    for round in 0..5_u64 {
        let mut log = open(&settings);
        let first = log.append(&[event(&format!("a{round}")), event(&format!("b{round}"))]).unwrap();
        assert_eq!(first, FIRST + 2 * round);
        expected.push((first, event(&format!("a{round}"))));
        expected.push((first + 1, event(&format!("b{round}"))));
        assert_eq!(read_all(&log.reader(), FIRST - 1), (expected.clone(), vec![]));
        assert_eq!(log.reader().page_after(first + 1).unwrap(), Page::default());
    }
}

#[test]
fn one_process_at_a_time_writes() {
    let dir = TempDir::new().unwrap();
    let settings = settings(dir.path());
    let held = open(&settings);
    assert!(matches!(EventLog::open(&settings), Err(OpenError::Busy(_))));
    drop(held);
    open(&settings);
}

#[test]
fn at_the_bound_the_oldest_go_and_a_reader_is_told_which() {
    let dir = TempDir::new().unwrap();
    let settings = Settings { max_events: 16, ..settings(dir.path()) };
    let mut log = open(&settings);
    for count in 0..100_u64 {
        log.append(&[event(&count.to_string())]).unwrap();
        let kept = log.reader().last() + 1 - log.reader().oldest();
        assert!(kept <= 16 && kept >= 14.min(count + 1), "{kept} of {}", count + 1);
    }
    let (events, missing) = read_all(&log.reader(), FIRST - 1);
    let oldest = events[0].0;
    assert_eq!(missing, [(FIRST, oldest - 1)]);
    assert_eq!(events.last().unwrap(), &(FIRST + 99, event("99")));
    assert!(segments(dir.path()).len() <= 9);
    drop(log);
    let log = open(&settings);
    assert_eq!((log.reader().origin(), log.reader().oldest()), (FIRST, oldest));
}

#[test]
fn the_bound_in_bytes_holds_on_the_disk() {
    let dir = TempDir::new().unwrap();
    let settings = Settings { max_bytes: 64 << 10, ..settings(dir.path()) };
    let mut log = open(&settings);
    for _ in 0..200 {
        log.append(&[vec![b'x'; 1_000]]).unwrap();
        let on_disk: u64 = segments(dir.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(on_disk <= 64 << 10, "{on_disk}");
    }
}

#[test]
fn a_reader_that_has_an_old_segment_open_loses_nothing_of_its_page() {
    let dir = TempDir::new().unwrap();
    let mut log = open(&Settings { max_events: 8, ..settings(dir.path()) });
    log.append(&[event("old")]).unwrap();
    let reader = log.reader();
    log.append(&[event("new")]).unwrap();
    assert_eq!(reader.page_after(FIRST - 1).unwrap().events[0].1, event("old"));
    drop(log);
    // The writer is closed: what was read stays readable.
    assert_eq!(reader.page_after(FIRST - 1).unwrap().events.len(), 2);
}

#[test]
fn acknowledgements_outlive_openings_and_their_segments() {
    let dir = TempDir::new().unwrap();
    let settings = Settings { max_events: 8, ..settings(dir.path()) };
    let mut log = open(&settings);
    log.append(&[event("x")]).unwrap();
    assert!(matches!(
        log.acknowledge("agent", FIRST + 1),
        Err(AcknowledgeError::Unknown { last: FIRST, .. })
    ));
    assert_eq!(log.acknowledge("agent", FIRST).unwrap(), FIRST);
    assert_eq!(log.acknowledge("agent", 3).unwrap(), FIRST, "an earlier one changes nothing");
    for _ in 0..50 {
        log.append(&[event("y")]).unwrap();
    }
    drop(log);
    assert_eq!(open(&settings).reader().acknowledged("agent"), Some(FIRST));
    let mut log = open(&settings);
    for number in 0..MAX_SUBSCRIBERS - 1 {
        log.acknowledge(&number.to_string(), FIRST).unwrap();
    }
    assert!(matches!(log.acknowledge("one more", FIRST), Err(AcknowledgeError::Subscriber)));
}

#[test]
fn too_large_an_event_is_refused_and_takes_no_number() {
    let dir = TempDir::new().unwrap();
    let mut log = open(&settings(dir.path()));
    let large = vec![0; MAX_EVENT_BYTES + 1];
    assert!(matches!(log.append(&[event("x"), large]), Err(AppendError::TooLarge(_))));
    assert_eq!(log.append(&[vec![0; MAX_EVENT_BYTES]]).unwrap(), FIRST);
    drop(log);
    assert_eq!(open(&settings(dir.path())).reader().last(), FIRST);
}

#[test]
fn damage_in_the_middle_costs_its_events_and_no_number() {
    let dir = TempDir::new().unwrap();
    let mut log = open(&settings(dir.path()));
    log.append(&[event("first"), event("second"), event("third")]).unwrap();
    drop(log);
    let path = segments(dir.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|window| window == b"second").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let OpenedLog { mut log, findings } = EventLog::open(&settings(dir.path())).unwrap();
    assert!(findings.len() == 1 && findings[0].contains("is damaged"), "{findings:?}");
    assert_eq!(log.append(&[event("fourth")]).unwrap(), FIRST + 3);
    let (events, missing) = read_all(&log.reader(), FIRST - 1);
    let numbers: Vec<u64> = events.iter().map(|(number, _)| *number).collect();
    assert_eq!((numbers, missing), (vec![FIRST, FIRST + 2, FIRST + 3], vec![(FIRST + 1, FIRST + 1)]));
}

#[test]
fn a_lost_directory_begins_anew_with_other_numbers() {
    let dir = TempDir::new().unwrap();
    let mut log = open(&settings(dir.path()));
    log.append(&[event("x")]).unwrap();
    drop(log);
    for path in segments(dir.path()) {
        fs::remove_file(path).unwrap();
    }
    let log = open(&Settings { first_number: 5_000, ..settings(dir.path()) });
    assert_eq!((log.reader().last(), log.reader().origin()), (4_999, 5_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // Promises: EXT-66
    #[test]
    fn a_write_that_was_torn_anywhere_is_cut_and_numbers_go_on(
        sizes in prop::collection::vec(0..300_usize, 1..12),
        max_events in 2..40_usize,
        at in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let dir = TempDir::new().unwrap();
        let settings = Settings { max_events: max_events * 8, ..settings(dir.path()) };
        let mut log = open(&settings);
        for (number, size) in sizes.iter().enumerate() {
            log.append(&[vec![u8::try_from(number).unwrap(); *size]]).unwrap();
        }
        let (before, _) = read_all(&log.reader(), FIRST - 1);
        drop(log);
        let files = segments(dir.path());
        let path = files.last().unwrap();
        let bytes = fs::read(path).unwrap();
        let cut = at.index(bytes.len() + 1);
        let mut torn = bytes[..cut].to_vec();
        torn.extend_from_slice(&noise);
        fs::write(path, &torn).unwrap();

        let OpenedLog { mut log, findings } = EventLog::open(&settings).unwrap();
        let (after, missing) = read_all(&log.reader(), FIRST - 1);
        // What is left is the beginning of what was there, whole.
        prop_assert_eq!(&after[..], &before[..after.len()]);
        prop_assert!(missing.is_empty());
        // What lay before the cut is all there.
        let mut whole = 0;
        let _ = scan(&bytes[..cut], |_, record| whole += usize::from(record.kind == RecordKind::Event));
        let in_others = before.len() - {
            let mut count = 0;
            let _ = scan(&bytes, |_, record| count += usize::from(record.kind == RecordKind::Event));
            count
        };
        prop_assert_eq!(after.len(), in_others + whole);
        let said = findings.iter().all(|finding| finding.contains("were cut off"));
        prop_assert!(said && findings.len() <= 1);
        let next = FIRST + after.len() as u64;
        prop_assert_eq!(log.append(&[b"next".to_vec()]).unwrap(), next);
        drop(log);
        let log = EventLog::open(&settings).unwrap();
        prop_assert_eq!(log.findings, Vec::<String>::new());
        prop_assert_eq!(log.log.reader().page_after(next - 1).unwrap().events, vec![(next, b"next".to_vec())]);
    }
}
