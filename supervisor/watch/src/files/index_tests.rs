use proptest::prelude::*;

use super::*;

fn seen(files: &[(&str, u64)]) -> Vec<SeenFile> {
    let file = |&(name, state): &(&str, u64)| SeenFile {
        name: OsStr::new(name).into(),
        fingerprint: Fingerprint(state),
    };
    files.iter().map(file).collect()
}

fn changes(comparison: &Comparison) -> Vec<(String, Change)> {
    comparison.changes.iter().map(|(name, change)| (name.to_string_lossy().into_owned(), *change)).collect()
}

// Promises: SHADOW-66
#[test]
fn a_change_counts_once_it_rests() {
    let (mut index, dir) = (Index::default(), Path::new("/w"));
    index.learn(dir.to_owned(), seen(&[("a", 1), ("b", 1), ("c", 1)]));
    let first = index.compare(dir, seen(&[("a", 1), ("b", 2), ("d", 1)]));
    assert!(first.is_unsettled && first.changes.is_empty());
    // `b` is still written.
    let second = index.compare(dir, seen(&[("a", 1), ("b", 3), ("d", 1)]));
    assert!(second.is_unsettled);
    assert_eq!(changes(&second), [("c".into(), Change::Removed), ("d".into(), Change::Added)]);
    let third = index.compare(dir, seen(&[("a", 1), ("b", 3), ("d", 1)]));
    assert!(!third.is_unsettled);
    assert_eq!(changes(&third), [("b".into(), Change::Changed)]);
    assert_eq!(index.compare(dir, seen(&[("a", 1), ("b", 3), ("d", 1)])), Comparison::default());
    assert_eq!(index.files(), 3);
}

// Promises: SHADOW-66
#[test]
fn a_file_that_is_replaced_and_put_back_is_no_change() {
    let (mut index, dir) = (Index::default(), Path::new("/w"));
    index.learn(dir.to_owned(), seen(&[("a", 1)]));
    assert!(index.compare(dir, seen(&[("a~", 1)])).is_unsettled);
    assert_eq!(index.compare(dir, seen(&[("a", 1)])), Comparison::default());
}

#[test]
fn a_directory_goes_with_all_below_it_and_with_nothing_beside_it() {
    let mut index = Index::default();
    for dir in ["/w", "/w/a", "/w/a/b", "/w/ab"] {
        index.learn(dir.into(), seen(&[("f", 1)]));
    }
    assert_eq!(index.children(Path::new("/w")), [Path::new("/w/a"), Path::new("/w/ab")]);
    let (directories, files) = index.remove(Path::new("/w/a"));
    assert_eq!(directories, [Path::new("/w/a"), Path::new("/w/a/b")]);
    assert_eq!(files, [Path::new("/w/a/f"), Path::new("/w/a/b/f")]);
    assert_eq!((index.directories(), index.files()), (2, 2));
}

proptest! {
    /// Whatever happens to a directory: once it rests, what was told of it leads from what was there to what
    /// is there now.
    // Promises: SHADOW-66
    #[test]
    fn no_change_is_missed(states in prop::collection::vec(prop::collection::btree_map("[a-d]", 0u64..3, 0..4), 1..12)) {
        let (mut index, dir) = (Index::default(), Path::new("/w"));
        index.add(dir.to_owned());
        let mut told: std::collections::BTreeSet<String> = Default::default();
        let mut rest = states.clone();
        let last = states.last().cloned().unwrap_or_default();
        // It rests at the end: two looks see the same.
        rest.extend([last.clone(), last.clone()]);
        let mut is_unsettled = false;
        for state in rest {
            let files: Vec<SeenFile> = state
                .iter()
                .map(|(name, state)| SeenFile { name: OsStr::new(name).into(), fingerprint: Fingerprint(*state) })
                .collect();
            let comparison = index.compare(dir, files);
            is_unsettled = comparison.is_unsettled;
            for (name, change) in &comparison.changes {
                let name = name.to_string_lossy().into_owned();
                match change {
                    Change::Added => prop_assert!(told.insert(name)),
                    Change::Removed => prop_assert!(told.remove(&name)),
                    Change::Changed => prop_assert!(told.contains(&name)),
                }
            }
        }
        prop_assert!(!is_unsettled);
        prop_assert_eq!(told, last.into_keys().collect());
    }
}
