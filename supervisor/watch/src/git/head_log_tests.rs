use proptest::prelude::*;

use super::*;

/// Lines of a log: from which commit to which, at which second, and why.
fn log(entries: &[(&str, &str, i64, &str)]) -> Vec<u8> {
    let line = |(old, new, seconds, message): &(&str, &str, i64, &str)| {
        let (old, new) = (old.repeat(40), new.repeat(40));
        format!("{old} {new} A B <a@b> {seconds} +0100\t{message}\n")
    };
    entries.iter().map(line).collect::<String>().into_bytes()
}

fn seen(commit: &str, log_bytes: usize) -> Mark {
    let log_bytes = u64::try_from(log_bytes).unwrap();
    Mark { seen: Some(SeenCommit { commit: Some(commit.repeat(40)), log_bytes }), since: None }
}

/// The first letters of commits.
fn letters(new: &NewCommits) -> String {
    new.commits.iter().map(|commit| &commit.id[..1]).collect()
}

/// The first letters of the commits after a mark.
fn commits(log: &[u8], mark: &Mark) -> String {
    letters(&HeadLog::parse(log, 0).commits_after(mark))
}

// Promises: SHADOW-72
#[test]
fn a_commit_is_told_from_a_checkout_a_pull_and_a_rebase() {
    for (message, is_commit) in [
        ("commit: two", true),
        ("commit (amend): two", true),
        ("commit (merge): two", true),
        ("commit (initial): two", true),
        ("checkout: moving from main to topic", false),
        ("pull: Fast-forward", false),
        ("reset: moving to HEAD~1", false),
        ("rebase (finish): returning to refs/heads/main", false),
    ] {
        let first = log(&[("0", "a", 1, "commit (initial): one")]);
        let all = [first.clone(), log(&[("a", "b", 2, message)])].concat();
        assert_eq!(commits(&all, &seen("a", first.len())), if is_commit { "b" } else { "" }, "{message}");
    }
}

// Promises: SHADOW-96
#[test]
fn all_commits_after_the_last_one_seen_are_told_and_an_amended_one_as_it_became() {
    let first = log(&[("0", "a", 1, "commit (initial): one")]);
    let rest = log(&[
        ("a", "b", 2, "commit: two"),
        ("b", "c", 3, "commit (amend): two"),
        ("c", "a", 4, "checkout: moving from main to topic"),
        ("a", "d", 5, "commit: three"),
        ("d", "a", 6, "checkout: moving from topic to old"),
    ]);
    let all = [first.clone(), rest].concat();
    assert_eq!(commits(&all, &seen("a", first.len())), "cd");
    assert_eq!(commits(&all, &Mark { seen: Some(SeenCommit::default()), since: None }), "acd");
    // Without the place, the same commit may stand at several; the last one is as good as any.
    assert_eq!(commits(&all, &seen("a", 7)), "");
    assert_eq!(commits(&all, &seen("b", 7)), "cd");
    // Its own entry is gone, and the next one is there.
    assert_eq!(
        commits(&log(&[("e", "a", 2, "commit: two"), ("a", "b", 3, "commit: three")]), &seen("e", 7)),
        "ab"
    );
    // A commit that the log has no more: by the time, else the last entry, which is none.
    assert_eq!(commits(&all, &seen("e", 7)), "");
    assert_eq!(commits(&all, &Mark { since: Some(3), ..seen("e", 7) }), "cd");
    assert_eq!(commits(&all, &Mark { seen: None, since: Some(5) }), "d");
}

// Promises: SHADOW-96
#[test]
fn of_too_many_commits_the_latest_are_told_and_the_rest_is_said() {
    let lines: String = (0..COMMITS + 3)
        .map(|number| format!("{number:040x} {:040x} A <a> 7 +0000\tcommit: n\n", number + 1))
        .collect();
    let all = HeadLog::parse(lines.as_bytes(), 0)
        .commits_after(&Mark { seen: Some(SeenCommit::default()), since: None });
    assert!(all.is_cut && all.commits.len() == COMMITS);
    let last = all.commits.last().map(|commit| commit.id.clone());
    assert_eq!(last, Some(format!("{:040x}", COMMITS + 3)));
    // More was written than is read at once.
    let tail = HeadLog::parse(lines.as_bytes(), 1000).commits_after(&seen("a", 900));
    assert!(tail.is_cut);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("HEAD");
    fs::write(&path, lines.repeat(100)).unwrap();
    let read = HeadLog::read(&path, 100, u64::MAX).unwrap();
    assert!(read.unread > 100 && read.commits_after(&seen("a", 100)).is_cut);
    assert!(HeadLog::read(dir.path(), 0, u64::MAX).is_none());
    assert!(HeadLog::read(&path.join("x"), 0, u64::MAX).is_none());
}

#[test]
fn what_is_appended_during_a_look_is_told_by_the_next_one_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("HEAD");
    let first = log(&[("0", "a", 1, "commit (initial): one")]);
    let all = [first.clone(), log(&[("a", "b", 2, "commit: two")])].concat();
    fs::write(&path, &all).unwrap();
    let end = |part: &[u8]| u64::try_from(part.len()).unwrap();
    let begin = Mark { seen: Some(SeenCommit::default()), since: None };
    let now = HeadLog::read(&path, 0, end(&first)).unwrap().commits_after(&begin);
    assert_eq!((letters(&now).as_str(), &now.seen), ("a", &seen("a", first.len()).seen));
    let next = Mark { seen: now.seen, since: None };
    let next = HeadLog::read(&path, end(&first), end(&all)).unwrap().commits_after(&next);
    assert_eq!((letters(&next).as_str(), &next.seen), ("b", &seen("b", all.len()).seen));
}

proptest! {
    /// A hostile repository's log breaks nothing, and whatever was seen before, no commit comes twice.
    // Promises: SHADOW-73, SHADOW-96
    #[test]
    fn any_log_is_taken(text in "([0-9a-f]{39,41} [0-9a-f]{40} \\PC{0,30}\t?\\PC{0,20}\n?){0,8}", begin in 0..3u64, bytes in 0..900u64) {
        let mark = Mark { seen: Some(SeenCommit { commit: None, log_bytes: bytes }), since: None };
        let found = HeadLog::parse(text.as_bytes(), begin).commits_after(&mark);
        let mut once: Vec<&String> = found.commits.iter().map(|commit| &commit.id).collect();
        once.sort();
        once.dedup();
        prop_assert_eq!(once.len(), found.commits.len());
    }

    /// Looks at any moments tell each commit once, in the order in which they were made, also if each has time for some commits alone.
    // Promises: SHADOW-96
    #[test]
    fn looks_at_any_moments_tell_each_commit_once(looks in prop::collection::btree_set(0..20usize, 0..6), most in 1..4usize) {
        let lines: Vec<String> = (1..=20)
            .map(|number| format!("{:040x} {number:040x} A <a> 7 +0000\tcommit: n\n", number - 1))
            .collect();
        let (mut told, mut mark) = (Vec::new(), Mark { seen: Some(SeenCommit::default()), since: None });
        for at in looks.into_iter().chain([20]) {
            let log = HeadLog::parse(lines[..at].concat().as_bytes(), 0);
            let mut is_all = false;
            while !is_all {
                let NewCommits { commits, seen, .. } = log.commits_after(&mark);
                told.extend(commits.iter().take(most).map(|commit| commit.id.clone()));
                is_all = commits.len() <= most;
                let part = commits.get(most - 1).filter(|_| !is_all).map(NewCommit::seen);
                mark.seen = part.or(seen).or_else(|| mark.seen.take());
            }
        }
        prop_assert_eq!(told, (1..=20).map(|number| format!("{number:040x}")).collect::<Vec<_>>());
    }
}
