//! The uid of each plugin: allocated once, stored, never reused.
//!
//! `<data_dir>/identities.json` is `{"version":1,"plugins":{"name":70000}}`; a plugin's gid is the same
//! number. A plugin that was removed keeps its number, because its files may still exist. Talon's own
//! services are in the same file, by their reserved names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use talon_jail::Identity;

use crate::settings::SetupError;
use talon_plugin_config::name::{PluginName, is_well_formed};
use talon_sanitize::Raw;

const FILE: &str = "identities.json";
const LOCK_FILE: &str = "identities.lock";
const NEW_FILE: &str = "identities.json.new";
const VERSION: u32 = 1;

/// The largest file that is read: room for a hundred thousand plugins.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Allocates uids.
#[derive(Debug)]
pub(crate) struct Identities {
    dir: PathBuf,
    range: RangeInclusive<u32>,
    known: Mutex<BTreeMap<String, u32>>,
    /// Plugins that are about to be started. They get their uids in one write: with hundreds of plugins, a
    /// write and a sync for each would delay the starts.
    expected: Mutex<BTreeSet<String>>,
}

/// Why a plugin gets no uid. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum IdentityError {
    /// The whole range is taken.
    #[error(
        "every uid of {}-{} belongs to a plugin already: widen sandbox.uid_range, or remove plugins that are gone from {}",
        range.start(), range.end(), path.display()
    )]
    Exhausted {
        /// The range.
        range: RangeInclusive<u32>,
        /// The file with the allocated uids.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("{} is damaged: {problem}; restore it from a backup, or remove it to hand out uids anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file cannot be read or written.
    #[error("cannot use {}: {source}; check that its directory can be written", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    plugins: BTreeMap<String, u32>,
}

impl Identities {
    /// Reads the allocated uids, so that a damaged file is found when the supervisor starts.
    pub(crate) fn open(data_dir: &Path, range: RangeInclusive<u32>) -> Result<Self, SetupError> {
        // The largest number means "no change" to chown, and 0 is root.
        if range.is_empty() || *range.start() == 0 || *range.end() == u32::MAX {
            let problem = "it must begin above 0, end below 4294967295 and hold at least one uid".to_owned();
            return Err(SetupError::Setting { setting: "sandbox.uid_range", problem });
        }
        let this =
            Self { dir: data_dir.to_owned(), range, known: Mutex::default(), expected: Mutex::default() };
        let known = this.read().map_err(|error| match error {
            IdentityError::Io { path, source } => SetupError::Io { what: "read", path, source },
            other => SetupError::Identities { path: this.path(), problem: damage_of(other) },
        })?;
        *this.known.lock() = known;
        Ok(this)
    }

    fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// The identity of a plugin: its stored one, or the lowest that was never used. Blocking: it waits for
    /// another supervisor that shares the data directory and is allocating one.
    pub(crate) fn get_or_allocate(&self, plugin: &PluginName) -> Result<Identity, IdentityError> {
        let mut known = self.known.lock();
        if let Some(uid) = known.get(plugin.as_str()) {
            return Ok(Identity { uid: *uid, gid: *uid });
        }
        let _lock = self.lock().map_err(|source| self.io_error(source))?;
        let mut stored = self.read()?;
        let uid = match stored.get(plugin.as_str()) {
            Some(uid) => *uid,
            None => {
                let taken: BTreeSet<u32> = stored.values().copied().collect();
                let free = self.range.clone().find(|uid| !taken.contains(uid)).ok_or_else(|| {
                    IdentityError::Exhausted { range: self.range.clone(), path: self.path() }
                })?;
                stored.insert(plugin.to_string(), free);
                self.add_expected(&mut stored);
                self.write(&stored).map_err(|source| self.io_error(source))?;
                free
            }
        };
        *known = stored;
        Ok(Identity { uid, gid: uid })
    }

    /// Announces a plugin that is about to be started: the next write of the file includes it.
    pub(crate) fn announce(&self, plugin: &PluginName) {
        self.expected.lock().insert(plugin.to_string());
    }

    /// Allocates uids for the announced plugins too, unless that would leave none for others.
    fn add_expected(&self, stored: &mut BTreeMap<String, u32>) {
        let mut expected = std::mem::take(&mut *self.expected.lock());
        expected.retain(|plugin| !stored.contains_key(plugin));
        let taken: BTreeSet<u32> = stored.values().copied().collect();
        let free = self.range.clone().filter(|uid| !taken.contains(uid));
        let given: Vec<u32> = free.take(expected.len() + 1).collect();
        if given.len() > expected.len() {
            stored.extend(expected.into_iter().zip(given));
        }
    }

    fn io_error(&self, source: io::Error) -> IdentityError {
        IdentityError::Io { path: self.path(), source }
    }

    fn lock(&self) -> io::Result<File> {
        let file = options().write(true).create(true).truncate(false).open(self.dir.join(LOCK_FILE))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    fn read(&self) -> Result<BTreeMap<String, u32>, IdentityError> {
        let file = match options().read(true).open(self.path()) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(source) => return Err(self.io_error(source)),
        };
        let damaged = |problem: String| IdentityError::Damaged { path: self.path(), problem };
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(|source| self.io_error(source))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(damaged(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        let stored: Stored = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
        if stored.version != VERSION {
            return Err(damaged(format!(
                "its version is {}, and this supervisor knows {VERSION}",
                stored.version
            )));
        }
        let mut owners = BTreeMap::new();
        for (name, uid) in &stored.plugins {
            if !is_well_formed(name) || *uid == 0 || *uid == u32::MAX {
                return Err(damaged(format!("it gives uid {uid} to {:?}", Raw::from(name).line_within(100))));
            }
            if let Some(other) = owners.insert(*uid, name) {
                return Err(damaged(format!("it gives uid {uid} to both {other} and {name}")));
            }
        }
        Ok(stored.plugins)
    }

    /// Replaces the file atomically; it is synced to the disk when this returns.
    fn write(&self, plugins: &BTreeMap<String, u32>) -> io::Result<()> {
        let stored = Stored { version: VERSION, plugins: plugins.clone() };
        let mut text = serde_json::to_vec_pretty(&stored)?;
        text.push(b'\n');
        let new = self.dir.join(NEW_FILE);
        let mut file = options().write(true).create(true).truncate(true).open(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&new, self.path())?;
        File::open(&self.dir)?.sync_all()
    }
}

fn damage_of(error: IdentityError) -> String {
    match error {
        IdentityError::Damaged { problem, .. } => problem,
        other => other.to_string(),
    }
}

fn options() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PluginName {
        PluginName::new(text).unwrap()
    }

    fn uid(identities: &Identities, text: &str) -> u32 {
        identities.get_or_allocate(&name(text)).unwrap().uid
    }

    // Promises: LAUNCH-8
    #[test]
    fn uids_are_stable_and_never_shared() {
        let dir = tempfile::tempdir().unwrap();
        let first = Identities::open(dir.path(), 70_000..=70_009).unwrap();
        assert_eq!(uid(&first, "a"), 70_000);
        assert_eq!(uid(&first, "b"), 70_001);
        assert_eq!(uid(&first, "a"), 70_000);
        // Another supervisor with the same data directory, or the next one.
        let second = Identities::open(dir.path(), 70_000..=70_009).unwrap();
        assert_eq!(uid(&second, "c"), 70_002);
        assert_eq!(uid(&first, "d"), 70_003);
        assert_eq!(uid(&second, "b"), 70_001);
    }

    // Promises: LAUNCH-8
    #[test]
    fn threads_get_different_uids() {
        let dir = tempfile::tempdir().unwrap();
        let uids = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|index| {
                    let dir = dir.path();
                    scope.spawn(move || {
                        uid(&Identities::open(dir, 70_000..=70_099).unwrap(), &format!("p{index}"))
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<BTreeSet<_>>()
        });
        assert_eq!(uids.len(), 8);
    }

    #[test]
    fn who_is_expected_is_written_along() {
        let dir = tempfile::tempdir().unwrap();
        let identities = Identities::open(dir.path(), 70_000..=70_009).unwrap();
        for expected in ["d", "a", "b"] {
            identities.announce(&name(expected));
        }
        assert_eq!(uid(&identities, "b"), 70_000);
        let written = identities.read().unwrap();
        assert_eq!(
            written.into_iter().collect::<Vec<_>>(),
            [("a".to_owned(), 70_001), ("b".to_owned(), 70_000), ("d".to_owned(), 70_002)]
        );
        assert_eq!((uid(&identities, "d"), uid(&identities, "c")), (70_002, 70_003));
    }

    #[test]
    fn nobody_goes_without_for_who_is_only_expected() {
        let dir = tempfile::tempdir().unwrap();
        let identities = Identities::open(dir.path(), 70_000..=70_002).unwrap();
        for expected in ["a", "b"] {
            identities.announce(&name(expected));
        }
        assert_eq!(
            (uid(&identities, "x"), uid(&identities, "y"), uid(&identities, "z")),
            (70_000, 70_001, 70_002)
        );
    }

    // Promises: LAUNCH-10
    #[test]
    fn a_full_range_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let identities = Identities::open(dir.path(), 70_000..=70_000).unwrap();
        uid(&identities, "a");
        let error = identities.get_or_allocate(&name("b")).unwrap_err();
        assert!(matches!(error, IdentityError::Exhausted { .. }));
        assert!(error.to_string().contains("70000-70000"), "{error}");
    }

    // Promises: BAD-18
    #[test]
    fn a_damaged_file_is_refused_by_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        for text in [
            "",
            "garbage",
            r#"{"version":2,"plugins":{}}"#,
            r#"{"version":1,"plugins":{"a":0}}"#,
            r#"{"version":1,"plugins":{"a":70000,"b":70000}}"#,
            r#"{"version":1,"plugins":{"../a":70000}}"#,
            r#"{"version":1,"plugins":{},"more":1}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Identities::open(dir.path(), 70_000..=70_001).unwrap_err();
            assert!(matches!(error, SetupError::Identities { .. }), "{text}");
            assert!(error.to_string().contains("identities.json"), "{error}");
        }
    }

    #[test]
    fn root_and_nobody_are_in_no_range() {
        let dir = tempfile::tempdir().unwrap();
        for range in [0..=10, 10..=u32::MAX] {
            assert!(matches!(Identities::open(dir.path(), range), Err(SetupError::Setting { .. })));
        }
    }
}
