//! The keys, one a file, named by their age.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ulid::Ulid;

/// The directory below the one for data.
pub(super) const DIRECTORY: &str = "receipts";
/// As long as the output of the hash, as RFC 2104 recommends.
pub(super) const KEY_BYTES: usize = 32;
const EXTENSION: &str = "key";
/// When a start makes a new key: 90 days, after which the old one only verifies. Not configurable.
const MAX_AGE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// The most keys that are read: 25 years of them. Older ones verify nothing more.
const MAX_KEYS: usize = 100;

/// The keys cannot be read, or none can be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeysError {
    #[error("{} cannot be used", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("no random bytes")]
    Random(#[source] io::Error),
}

/// All keys, by their ids.
pub(super) struct Keys {
    keys: BTreeMap<String, [u8; KEY_BYTES]>,
    newest: (String, [u8; KEY_BYTES]),
}

/// Never shows a key.
impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("ids", &self.keys.keys()).finish_non_exhaustive()
    }
}

impl Keys {
    pub(super) fn open(directory: &Path, now: SystemTime) -> Result<Self, KeysError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| KeysError::Io { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed(directory))?;
        let mut files: Vec<(Ulid, PathBuf)> = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed(directory))? {
            let path = entry.map_err(failed(directory))?.path();
            let is_key = path.extension().is_some_and(|extension| extension == EXTENSION);
            let id = path.file_stem().and_then(|name| Ulid::from_string(name.to_str()?).ok());
            files.extend(id.filter(|_| is_key).map(|id| (id, path)));
        }
        files.sort();
        files.drain(..files.len().saturating_sub(MAX_KEYS));
        let mut keys = BTreeMap::new();
        for (id, path) in &files {
            // A key that was not written whole was never used.
            if let Ok(key) = <[u8; KEY_BYTES]>::try_from(fs::read(path).map_err(failed(path))?) {
                keys.insert(id.to_string(), key);
            }
        }
        let is_fresh = |id: &str| {
            Ulid::from_string(id)
                .is_ok_and(|id| now.duration_since(id.datetime()).is_ok_and(|age| age < MAX_AGE))
        };
        let newest = keys.iter().next_back().filter(|(id, _)| is_fresh(id));
        let newest = match newest {
            Some((id, key)) => (id.clone(), *key),
            None => Self::make(directory, now)?,
        };
        keys.insert(newest.0.clone(), newest.1);
        Ok(Self { keys, newest })
    }

    fn make(directory: &Path, now: SystemTime) -> Result<(String, [u8; KEY_BYTES]), KeysError> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| KeysError::Random(error.into()))?;
        let id = Ulid::from_datetime(now).to_string();
        let path = directory.join(&id).with_extension(EXTENSION);
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(&key)?;
            file.sync_all()?;
            fs::File::open(directory)?.sync_all()
        };
        write().map_err(|source| KeysError::Io { path: path.clone(), source })?;
        Ok((id, key))
    }

    pub(super) fn newest(&self) -> (&str, &[u8; KEY_BYTES]) {
        (&self.newest.0, &self.newest.1)
    }

    pub(super) fn get(&self, id: &str) -> Option<&[u8; KEY_BYTES]> {
        self.keys.get(id)
    }
}
