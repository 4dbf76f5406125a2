//! The log of HEAD: which commits were made here, in their order. It tells them from checkouts, pulls, resets and
//! rebases, and from the commits of others.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::event::SeenCommit;

/// How much of the log's end is read. 256 KiB: some 1,000 entries, of which more than [`COMMITS`] are not looked into
/// anyway.
const READ_BYTES: u64 = 256 * 1024;

/// How much is read in front of what is new, so that the entry before it is whole: it has two hashes, a name, and the
/// first line of a message.
const ENTRY_BYTES: u64 = 64 * 1024;

/// How many commits since the last look are looked into: the latest ones, which is said. 50: the work of some days of a
/// person; each costs two runs of git.
pub(super) const COMMITS: usize = 50;

/// From where on commits are new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) seen: Option<SeenCommit>,
    /// In seconds since 1970, for when nothing was seen, or the log has it no more.
    pub(super) since: Option<i64>,
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewCommit {
    pub(super) id: String,
    /// Where its entry ends in HEAD's log; without a log, the length that a look found.
    pub(super) log_bytes: u64,
}

impl NewCommit {
    /// How far commits are looked into once this one is told, and those before it.
    pub(super) fn seen(&self) -> SeenCommit {
        SeenCommit { commit: Some(self.id.clone()), log_bytes: self.log_bytes }
    }
}

/// Commits that were made since a look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NewCommits {
    /// The oldest first.
    pub(super) commits: Vec<NewCommit>,
    /// Whether there were more than [`COMMITS`], or more than was read.
    pub(super) is_cut: bool,
    /// How far commits are looked into once these are told, by the log: a branch may lead to another commit than the log's last one,
    /// while git is between both. Absent without a log.
    pub(super) seen: Option<SeenCommit>,
}

impl NewCommits {
    /// The latest ones, in the order in which they were made.
    pub(super) fn latest(mut commits: Vec<NewCommit>, is_cut: bool) -> Self {
        let too_many = commits.len().saturating_sub(COMMITS);
        commits.drain(..too_many);
        Self { commits, is_cut: is_cut || too_many > 0, seen: None }
    }
}

/// The end of the log.
#[derive(Debug, Default)]
pub(super) struct HeadLog {
    entries: Vec<Entry>,
    /// How much in front of the entries was not read.
    unread: u64,
}

#[derive(Debug)]
struct Entry {
    old: String,
    new: String,
    seconds: i64,
    message: String,
    /// Where the next one begins in the file.
    end: u64,
}

impl Entry {
    /// `OLD NEW NAME <ADDRESS> SECONDS ZONE`, a tab and the message.
    fn parse(line: &str, end: u64) -> Option<Self> {
        let (head, message) = line.split_once('\t')?;
        let mut hashes = head.splitn(3, ' ');
        let (old, new, who) = (hashes.next()?, hashes.next()?, hashes.next()?);
        if !is_hash(old) || !is_hash(new) {
            return None;
        }
        let seconds = who.rsplit(' ').nth(1)?.parse().ok()?;
        Some(Self { old: old.to_owned(), new: new.to_owned(), seconds, message: message.to_owned(), end })
    }

    fn commit(&self) -> NewCommit {
        NewCommit { id: self.new.clone(), log_bytes: self.end }
    }

    fn is_commit(&self) -> bool {
        self.message.starts_with("commit")
    }

    fn amends(&self, id: &str) -> bool {
        self.message.starts_with("commit (amend)") && self.old == id
    }
}

impl HeadLog {
    /// The log up to `end`, as far as it is new after `length`, with the entry before it. None if there is no log.
    pub(super) fn read(path: &Path, length: u64, end: u64) -> Option<Self> {
        path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
        let mut file = File::open(path).ok()?;
        let now = file.metadata().ok()?.len().min(end);
        // A shorter one was written anew.
        let new = if length > now { 0 } else { length.saturating_sub(ENTRY_BYTES) };
        let begin = new.max(now.saturating_sub(READ_BYTES));
        file.seek(SeekFrom::Start(begin)).ok()?;
        let mut bytes = Vec::new();
        file.take(now - begin).read_to_end(&mut bytes).ok()?;
        Some(Self::parse(&bytes, begin))
    }

    /// The whole lines of a part that begins there.
    fn parse(bytes: &[u8], begin: u64) -> Self {
        let (mut entries, mut end) = (Vec::new(), begin);
        for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            end = end.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
            let is_whole = line.ends_with(b"\n") && (number > 0 || begin == 0);
            let entry = Entry::parse(String::from_utf8_lossy(line).trim_end_matches('\n'), end);
            entries.extend(entry.filter(|_| is_whole));
        }
        Self { entries, unread: begin }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The commits after the mark. One that was amended since then counts once, as it became.
    pub(super) fn commits_after(&self, mark: &Mark) -> NewCommits {
        let (new, is_cut) = self.entries_after(mark);
        let is_last = |index: usize, id: &str| !new.iter().skip(index + 1).any(|later| later.amends(id));
        let made = new.iter().enumerate().filter(|(_, entry)| entry.is_commit());
        let mut commits: Vec<NewCommit> = Vec::new();
        for (_, entry) in made.filter(|(index, entry)| is_last(*index, &entry.new)) {
            if !commits.iter().any(|commit| commit.id == entry.new) {
                commits.push(entry.commit());
            }
        }
        let seen = self.entries.last().map(|entry| entry.commit().seen());
        NewCommits { seen, ..NewCommits::latest(commits, is_cut) }
    }

    fn entries_from(&self, index: usize) -> &[Entry] {
        self.entries.get(index..).unwrap_or_default()
    }

    /// What is new, and whether there was more than was read.
    fn entries_after(&self, mark: &Mark) -> (&[Entry], bool) {
        if let Some(seen) = &mark.seen {
            let is_at = |entry: &Entry| Some(&entry.new) == seen.commit.as_ref();
            let by_place = |entry: &Entry| entry.end == seen.log_bytes && is_at(entry);
            let follows = |entry: &Entry| Some(&entry.old) == seen.commit.as_ref();
            // Old entries go after some time, and with them all places move.
            let by_place = self.entries.iter().position(by_place).map(|last| last + 1);
            let by_commit = || self.entries.iter().rposition(is_at).map(|last| last + 1);
            let begin = by_place.or_else(by_commit).or_else(|| self.entries.iter().position(follows));
            if let Some(begin) = begin {
                return (self.entries_from(begin), false);
            }
            if seen.log_bytes < self.unread || (seen.log_bytes == 0 && seen.commit.is_none()) {
                return (self.entries_from(0), self.unread > 0);
            }
        }
        let recent =
            |since| self.entries.iter().rposition(|entry| entry.seconds < since).map_or(0, |old| old + 1);
        let begin = mark.since.map_or_else(|| self.entries.len().saturating_sub(1), recent);
        (self.entries_from(begin), begin == 0 && self.unread > 0)
    }
}

/// SHA-1 or SHA-256, in hex.
pub(crate) fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
#[path = "head_log_tests.rs"]
mod tests;
