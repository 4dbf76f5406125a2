//! A storage backend: keeps each key in a file of its own. Enough for some thousand keys: a page reads all of them.
//!
//! Its entry has `config: { dir: /var/lib/store }` and `sandbox: { fs: { write: [/var/lib/store] } }`.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::BuildHasher as _;
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use talon_sdk::{
    Context, Plugin, StorageBytes, StorageCommand, StorageItem, StorageReply, StorageRequest, ToolError,
};

#[talon_sdk::args]
struct Settings {
    /// The directory of the files. Without one nothing is written.
    dir: Option<PathBuf>,
}

struct Store {
    dir: Option<PathBuf>,
    /// Of two writes at once, one compares first.
    writing: Mutex<()>,
}

struct Row {
    key: Vec<u8>,
    revision: String,
    value: Vec<u8>,
}

/// A revision that no key ever had: the time, and a number that the operating system drew.
fn new_revision() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_nanos(), RandomState::new().hash_one(now))
}

impl Row {
    /// Two lines, the revision and the key in its envelope, and the value as it is.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
        let revision = String::from_utf8(parts.next()?.to_vec()).ok()?;
        let sealed: StorageBytes = talon_sdk::serde_json::from_slice(parts.next()?).ok()?;
        Some(Self { revision, key: sealed.open().ok()?, value: parts.next()?.to_vec() })
    }
}

impl Store {
    /// The file of a key: its digest has the right length and the right characters for a name.
    fn file(&self, key: &[u8]) -> io::Result<PathBuf> {
        let dir = self.dir.as_ref().ok_or_else(|| io::Error::other("config: dir is not set"))?;
        Ok(dir.join(StorageBytes::seal(key).sha256))
    }

    fn read(&self, key: &[u8]) -> io::Result<Option<Row>> {
        if self.dir.is_none() {
            return Ok(None);
        }
        match fs::read(self.file(key)?) {
            Ok(bytes) => Row::parse(&bytes).map(Some).ok_or_else(|| io::Error::other("a file is damaged")),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file so that it is there as a whole after a power cut, or not at all.
    fn write(&self, key: &[u8], revision: &str, value: &[u8]) -> io::Result<()> {
        let path = self.file(key)?;
        let next = path.with_extension("next");
        let sealed = talon_sdk::serde_json::to_string(&StorageBytes::seal(key))?;
        let mut file = File::create(&next)?;
        file.write_all(format!("{revision}\n{sealed}\n").as_bytes())?;
        file.write_all(value)?;
        file.sync_all()?;
        fs::rename(&next, &path)?;
        self.sync()
    }

    fn remove(&self, key: &[u8]) -> io::Result<()> {
        fs::remove_file(self.file(key)?)?;
        self.sync()
    }

    /// A name in a directory is durable once the directory is.
    fn sync(&self) -> io::Result<()> {
        self.dir.as_ref().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    }

    fn rows(&self) -> io::Result<BTreeMap<Vec<u8>, Row>> {
        let mut rows = BTreeMap::new();
        let Some(dir) = &self.dir else { return Ok(rows) };
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.extension().is_none()
                && let Some(row) = Row::parse(&fs::read(path)?)
            {
                rows.insert(row.key.clone(), row);
            }
        }
        Ok(rows)
    }

    fn run(&self, command: StorageCommand) -> io::Result<StorageReply> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match command {
            StorageCommand::Get { key } => match self.read(&key)? {
                Some(row) => StorageReply::found(&row.value, row.revision),
                None => StorageReply::absent(),
            },
            StorageCommand::Set { .. } | StorageCommand::Delete { .. } if self.dir.is_none() => {
                StorageReply::refused("config: dir is not set")
            }
            StorageCommand::Set { key, value, expected } => {
                if self.read(&key)?.map(|row| row.revision) != expected {
                    return Ok(StorageReply::conflict());
                }
                let revision = new_revision();
                self.write(&key, &revision, &value)?;
                StorageReply::stored(revision)
            }
            StorageCommand::Delete { key, expected } => {
                if self.read(&key)?.map(|row| row.revision) != Some(expected) {
                    return Ok(StorageReply::conflict());
                }
                self.remove(&key)?;
                StorageReply::deleted()
            }
            StorageCommand::Scan { prefix, after, limit } => {
                let rows = self.rows()?;
                let found = rows.values().filter(|row| row.key.starts_with(&prefix) && row.key > after);
                let item =
                    |row: &Row| StorageItem::new(&row.key, row.revision.clone(), row.value.len() as u64);
                let mut items: Vec<StorageItem> = found.map(item).collect();
                let more = items.len() > limit as usize;
                items.truncate(limit as usize);
                StorageReply::page(items, more)
            }
        })
    }
}

/// Keeps the state of plugins.
#[talon_sdk::storage_backend]
async fn store(asked: StorageRequest, cx: Context) -> Result<StorageReply, ToolError> {
    // An error leaves open whether a write was done, and the host asks again.
    cx.shared::<Store>()?.run(asked.command()?).map_err(|error| ToolError::new(error.to_string()))
}

fn main() -> ExitCode {
    Plugin::new("hello")
        .description("Keeps the state of plugins in files.")
        .tool(store())
        .init(|settings: Settings| async move { Ok(Store { dir: settings.dir, writing: Mutex::default() }) })
        .serve()
}
