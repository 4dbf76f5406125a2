//! Checks that the uid range of plugins is really unused.
//!
//! A plugin that shares its uid or gid with an account could access that account's files and processes, and
//! vice versa. This checks the accounts and groups of this machine, the ranges of `newuidmap` (subuid,
//! subgid), and those that systemd reserves.

use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use talon_plugin_config::document::origin::KeyPath;

use super::Check;

/// The maximum that is read of one file: some 50,000 accounts; more are kept in a directory service anyway.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Maximum number of names in a message: enough to see which range is meant.
const MAX_NAMES: usize = 3;

/// Ranges that systemd assigns, or that must not be used, on every machine (<https://systemd.io/UIDS-GIDS/>).
const RESERVED: [(RangeInclusive<u32>, &str); 7] = [
    (60_001..=60_513, "home directories that systemd manages"),
    (60_514..=60_577, "users that systemd shows in containers"),
    (61_184..=65_519, "services with DynamicUser=yes"),
    (65_534..=65_535, "nobody"),
    (524_288..=1_879_048_191, "containers"),
    (2_147_352_576..=2_147_418_111, "files of foreign images"),
    (2_147_483_648..=u32::MAX, "programs that take a uid for a signed number, and so nobody"),
];

/// Uids of future accounts; no account needs to exist yet.
const FUTURE_ACCOUNTS: RangeInclusive<u32> = 1..=60_000;

/// The files with the assigned uids and gids.
struct Users {
    passwd: PathBuf,
    group: PathBuf,
    subuid: PathBuf,
    subgid: PathBuf,
}

impl Default for Users {
    fn default() -> Self {
        Self::in_dir(Path::new("/etc"))
    }
}

impl Users {
    fn in_dir(dir: &Path) -> Self {
        Self {
            passwd: dir.join("passwd"),
            group: dir.join("group"),
            subuid: dir.join("subuid"),
            subgid: dir.join("subgid"),
        }
    }

    /// The owners of parts of a range, for messages.
    fn within(&self, range: &RangeInclusive<u32>) -> Vec<String> {
        let mut taken = Vec::new();
        let mut report = |what: &str, mut names: Vec<String>| {
            names.sort();
            names.dedup();
            if names.is_empty() {
                return;
            }
            let more = if names.len() > MAX_NAMES { ", …" } else { "" };
            names.truncate(MAX_NAMES);
            taken.push(format!("{what} lie in it: {}{more}", names.join(", ")));
        };
        report("accounts of this machine", numbered(&self.passwd, range));
        report("groups of this machine", numbered(&self.group, range));
        report("subordinate uids that /etc/subuid lends", subordinate_ranges(&self.subuid, range));
        report("subordinate gids that /etc/subgid lends", subordinate_ranges(&self.subgid, range));
        let given = RESERVED.iter().filter(|(given, _)| overlap(given, range));
        taken
            .extend(given.map(|(given, to)| format!("{}-{} in it are for {to}", given.start(), given.end())));
        taken
    }
}

impl Check<'_> {
    /// Reports owners of uids or gids in a range.
    pub(super) fn uid_range(&mut self, range: &RangeInclusive<u32>, path: &KeyPath) {
        const HELP: &str = "choose a range that nobody uses, best between 65536 and 99999";
        for taken in Users::default().within(range) {
            self.problem(path, taken, HELP);
        }
        if overlap(&FUTURE_ACCOUNTS, range) {
            let message = format!("accounts that are made later get uids up to {}", FUTURE_ACCOUNTS.end());
            self.found.warning(path, message, HELP);
        }
    }
}

fn overlap(one: &RangeInclusive<u32>, other: &RangeInclusive<u32>) -> bool {
    one.start() <= other.end() && other.start() <= one.end()
}

/// Names in a passwd or group file whose number is in a range.
fn numbered(path: &Path, range: &RangeInclusive<u32>) -> Vec<String> {
    let entry = |line: &str| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        let number: u32 = number.parse().ok()?;
        range.contains(&number).then(|| format!("{name} ({number})"))
    };
    text(path).lines().filter_map(entry).collect()
}

/// Names in a subuid or subgid file (lines of `name:first:count`) that may use part of a range.
fn subordinate_ranges(path: &Path, range: &RangeInclusive<u32>) -> Vec<String> {
    let entry = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let first: u32 = fields.next()?.parse().ok()?;
        let count: u32 = fields.next()?.trim().parse().ok()?;
        let last = first.saturating_add(count.checked_sub(1)?);
        overlap(&(first..=last), range).then(|| format!("{name} ({first}-{last})"))
    };
    text(path).lines().filter_map(entry).collect()
}

/// The readable part of a file; empty if it does not exist.
fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        // What was read before an error still counts.
        drop(file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(dir: &Path) -> Users {
        let write = |name: &str, text: &[u8]| std::fs::write(dir.join(name), text).unwrap();
        write(
            "passwd",
            b"root:x:0:0::/:/bin/sh\nann:x:70001:1::/:/x\nbob:x:80000:1::/:/x\n\xff\nbroken\nc:x:no:1\n",
        );
        write("group", b"root:x:0:\nstaff:x:70002:ann\n");
        write("subuid", b"ann:100000:65536\nbob:90000:1\nodd:90500:0\nbroken:1\n");
        Users::in_dir(dir)
    }

    // Promises: LAUNCH-9
    #[test]
    fn whoever_has_part_of_the_range_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let users = users(dir.path());
        let within = |range| users.within(&range).join("; ");
        let found = within(70_000..=79_999);
        assert_eq!(
            found,
            "accounts of this machine lie in it: ann (70001); groups of this machine lie in it: staff (70002)"
        );
        let found = within(90_000..=100_000);
        assert!(found.ends_with("lie in it: ann (100000-165535), bob (90000-90000)"), "{found}");
        assert_eq!(within(70_003..=79_999), "");
        assert_eq!(within(90_001..=99_999), "");
        assert_eq!(Users::in_dir(&dir.path().join("missing")).within(&(1..=2)), Vec::<String>::new());
    }

    // Promises: LAUNCH-9
    #[test]
    fn what_is_given_away_on_every_machine_is_refused() {
        let nobody = Users::in_dir(Path::new("/nonexistent"));
        for (range, who) in [
            (65_000..=66_000, "DynamicUser"),
            (65_534..=65_534, "nobody"),
            (500_000..=524_288, "containers"),
            (4_294_967_000..=4_294_967_294, "signed"),
        ] {
            assert!(nobody.within(&range).join("; ").contains(who), "{range:?}");
        }
        assert!(nobody.within(&(65_536..=524_287)).is_empty());
    }

    #[test]
    fn ranges_overlap_where_they_share_a_number() {
        assert!(overlap(&(1..=5), &(5..=9)) && overlap(&(5..=9), &(1..=5)) && overlap(&(1..=9), &(3..=4)));
        assert!(!overlap(&(1..=4), &(5..=9)) && !overlap(&(5..=9), &(1..=4)));
    }
}
