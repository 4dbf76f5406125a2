//! `<data_dir>/approved/<plugin>.json`: `{"version":1,"actions":{"greet":{"description":"<sha256>", …}}}`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use talon_plugin_config::name::PluginName;

use super::digest::{Digests, is_digest};

/// The directory below the data directory.
const DIR: &str = "approved";
const VERSION: u32 = 1;
/// The largest record that is read: twice the size of the most remembered actions at about 500 bytes each.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// What was approved of one plugin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) actions: BTreeMap<String, Digests>,
    /// The digest of the plugin's own texts; empty if none were approved. `None` if an older supervisor wrote
    /// the record, which did not check texts.
    pub(super) texts: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordFile {
    version: u32,
    actions: BTreeMap<String, Digests>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    texts: Option<String>,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error("{} is damaged: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("cannot {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

/// Creates the directory for records, accessible only to us.
pub(crate) fn prepare(data_dir: &Path) -> io::Result<PathBuf> {
    let dir = data_dir.join(DIR);
    match std::fs::DirBuilder::new().mode(0o700).create(&dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(dir),
        made => made.map(|()| dir),
    }
}

impl Record {
    /// Reads the record. `None` if there is none.
    pub(super) fn read(dir: &Path, plugin: &PluginName) -> Result<Option<Self>, RecordError> {
        let path = path(dir, plugin);
        let read = |source| RecordError::Io { what: "read", path: path.clone(), source };
        let file = match open_options().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(read(error)),
        };
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(read)?;
        let damaged = |problem: String| RecordError::Damaged { path: path.clone(), problem };
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(damaged(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        let stored: RecordFile = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if stored.version != VERSION {
            let version = stored.version;
            return Err(damaged(format!("its version is {version}, and this supervisor knows {VERSION}")));
        }
        let texts = stored.texts.as_deref().is_none_or(|texts| texts.is_empty() || is_digest(texts));
        if !texts || !stored.actions.values().all(Digests::are_valid) {
            return Err(damaged("it holds something that is no digest".to_owned()));
        }
        Ok(Some(Self { actions: stored.actions, texts: stored.texts }))
    }

    /// Replaces the record atomically. It is on the disk when this returns.
    pub(super) fn write(&self, dir: &Path, plugin: &PluginName) -> Result<(), RecordError> {
        // The pid keeps two supervisors with the same data directory apart.
        let new = dir.join(format!("{plugin}.json.{}", std::process::id()));
        let path = path(dir, plugin);
        let replace = || {
            let stored =
                RecordFile { version: VERSION, actions: self.actions.clone(), texts: self.texts.clone() };
            let mut text = serde_json::to_vec_pretty(&stored)?;
            text.push(b'\n');
            let mut file = open_options().write(true).create(true).truncate(true).open(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            File::open(dir)?.sync_all()
        };
        replace().map_err(|source| RecordError::Io { what: "write", path: path.clone(), source })
    }
}

/// Plugin names contain no character with a special meaning in paths.
fn path(dir: &Path, plugin: &PluginName) -> PathBuf {
    dir.join(format!("{plugin}.json"))
}

fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}
