//! The file that `talon backup` writes: a tar of the databases, with a manifest behind them.
//!
//! ```text
//! plugins.db      a SQLite database
//! agent.db        another, where there are sessions or memory
//! manifest.json   {"format": "talon-backup", "version": 1, "created_at": …, "talon": …,
//!                  "parts": [{"name": "plugins.db", "layers": "key-values", "schema_version": …, "bytes": …, "sha256": …}]}
//! ```
//!
//! The manifest is last, since a database is streamed while it is copied and its digest is known then. A file
//! without one was not finished.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{Archive, Builder, EntryType, EntryWriter, Header};

use super::CHUNK_BYTES;
use crate::local::state::part::StatePart;

const FORMAT: &str = "talon-backup";
/// Increased when an older `talon` would misread the format.
const VERSION: u32 = 1;
const MANIFEST: &str = "manifest.json";
/// A manifest has a few hundred bytes.
const MAX_MANIFEST_BYTES: u64 = 64 << 10;
const MODE: u32 = 0o600;
/// The header of a SQLite file.
const HEADER_BYTES: usize = 100;

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    format: String,
    version: u32,
    pub(super) created_at: String,
    /// The version of Talon that wrote the backup.
    pub(super) talon: String,
    pub(super) parts: Vec<DatabaseCopy>,
}

/// One database in the backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DatabaseCopy {
    name: String,
    layers: String,
    pub(super) schema_version: u32,
    pub(super) bytes: u64,
    /// SHA-256, lower-case hexadecimal.
    pub(super) sha256: String,
}

impl DatabaseCopy {
    /// The part of the state in this database.
    pub(super) fn part(&self) -> Option<StatePart> {
        StatePart::ALL.into_iter().find(|part| file_name(*part) == self.name && layers(*part) == self.layers)
    }
}

/// The file name of a part's database in the archive.
pub(super) fn file_name(part: StatePart) -> &'static str {
    match part {
        StatePart::Plugins => "plugins.db",
        StatePart::Agent => "agent.db",
    }
}

fn layers(part: StatePart) -> &'static str {
    match part {
        StatePart::Plugins => "key-values",
        StatePart::Agent => "conversations",
    }
}

/// Why a file cannot be restored.
#[derive(Debug, thiserror::Error)]
pub(super) enum BackupError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is no backup that `talon backup` wrote: {0}")]
    NotABackup(&'static str),
    #[error("it ends before its manifest: the backup was not finished, or the file was cut off")]
    Incomplete,
    #[error("its manifest cannot be read: {0}")]
    Manifest(#[from] serde_json::Error),
    #[error(
        "its format is {0}, and this talon reads {VERSION}: restore it with the talon that wrote it, or a newer one"
    )]
    UnsupportedVersion(u32),
    #[error("{name} is not what the manifest says ({what} differs): the file is damaged, use another backup")]
    Mismatch { name: &'static str, what: &'static str },
}

/// Writes a backup.
pub(super) struct BackupWriter<'w, W: Write + Seek> {
    tar: Builder<&'w mut W>,
    /// The header of the current database.
    header: Header,
    parts: Vec<DatabaseCopy>,
}

impl<'w, W: Write + Seek> BackupWriter<'w, W> {
    pub(super) fn new(to: &'w mut W) -> Self {
        Self { tar: Builder::new(to), header: header(0), parts: Vec::new() }
    }

    /// Starts a database; its bytes follow.
    pub(super) fn begin_database(
        &mut self,
        part: StatePart,
        schema_version: u32,
    ) -> io::Result<PartWriter<'_>> {
        let name = file_name(part);
        self.header = header(0);
        let entry = self.tar.append_writer(&mut self.header, name)?;
        let copy = DatabaseCopy {
            name: name.to_owned(),
            layers: layers(part).to_owned(),
            schema_version,
            bytes: 0,
            sha256: String::new(),
        };
        Ok(PartWriter { entry, digest: Sha256::new(), copy })
    }

    /// Adds a completely written database to the manifest.
    pub(super) fn add_database(&mut self, copy: DatabaseCopy) {
        self.parts.push(copy);
    }

    /// Writes the manifest.
    pub(super) fn finish(mut self, created_at: String) -> io::Result<Manifest> {
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            created_at,
            talon: env!("CARGO_PKG_VERSION").to_owned(),
            parts: self.parts,
        };
        let mut text = serde_json::to_vec_pretty(&manifest)?;
        text.push(b'\n');
        self.tar.append_data(&mut header(text.len() as u64), MANIFEST, text.as_slice())?;
        self.tar.into_inner()?;
        Ok(manifest)
    }
}

fn header(bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(MODE);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    header.set_mtime(now.as_secs());
    header.set_size(bytes);
    header
}

/// Writes one database of the backup.
pub(super) struct PartWriter<'w> {
    entry: EntryWriter<'w>,
    digest: Sha256,
    copy: DatabaseCopy,
}

impl PartWriter<'_> {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.copy.bytes += bytes.len() as u64;
        self.entry.write_all(bytes)
    }

    /// Finishes the database and describes it.
    pub(super) fn finish(mut self) -> io::Result<DatabaseCopy> {
        self.entry.finish()?;
        self.copy.sha256 = hex::encode(self.digest.finalize());
        Ok(self.copy)
    }
}

/// A backup that matches its manifest.
#[derive(Debug)]
pub(super) struct VerifiedBackup {
    pub(super) manifest: Manifest,
    /// Where in the file the bytes of each part are.
    pub(super) entries: Vec<DatabaseEntry>,
}

/// A database and its position in the file.
#[derive(Debug, Clone)]
pub(super) struct DatabaseEntry {
    pub(super) part: StatePart,
    pub(super) offset: u64,
    pub(super) copy: DatabaseCopy,
}

/// Reads the whole file and compares it with its manifest. Calls `count` with the number of bytes read.
pub(super) fn check(file: &mut File, count: &impl Fn(u64)) -> Result<VerifiedBackup, BackupError> {
    let mut archive = Archive::new(file);
    let mut seen: Vec<(StatePart, u64, EntryContent)> = Vec::new();
    let mut manifest: Option<Manifest> = None;
    let foreign = |_: io::Error| BackupError::NotABackup("it is no tar file, or a damaged one");
    // Raw: otherwise long names and other extensions would be read into memory, and our archives have none.
    for entry in archive.entries().map_err(foreign)?.raw(true) {
        let mut entry = entry.map_err(foreign)?;
        if entry.header().entry_type() != EntryType::Regular || manifest.is_some() {
            return Err(BackupError::NotABackup("there is something else in it"));
        }
        let path = entry.path_bytes().into_owned();
        if path == MANIFEST.as_bytes() {
            if entry.size() > MAX_MANIFEST_BYTES {
                return Err(BackupError::NotABackup("its manifest is too large"));
            }
            let mut text = Vec::new();
            entry.read_to_end(&mut text)?;
            manifest = Some(read_manifest(&text)?);
            continue;
        }
        let part = StatePart::ALL.into_iter().find(|part| file_name(*part).as_bytes() == path);
        let Some(part) = part.filter(|part| seen.iter().all(|(known, ..)| known != part)) else {
            return Err(BackupError::NotABackup("there is something else in it"));
        };
        let offset = entry.raw_file_position();
        let content = examine(&mut entry, count)?;
        if content.bytes != entry.size() {
            return Err(BackupError::Incomplete);
        }
        seen.push((part, offset, content));
    }
    let manifest = manifest.ok_or(BackupError::Incomplete)?;
    if manifest.parts.len() != seen.len() {
        return Err(BackupError::Mismatch { name: MANIFEST, what: "the number of databases" });
    }
    let mut places = Vec::new();
    for (part, offset, content) in seen {
        let name = file_name(part);
        let copy = manifest.parts.iter().find(|copy| copy.part() == Some(part));
        let copy = copy.ok_or(BackupError::Mismatch { name, what: "its name" })?;
        if copy.bytes != content.bytes {
            return Err(BackupError::Mismatch { name, what: "its size" });
        }
        if copy.sha256 != content.sha256 {
            return Err(BackupError::Mismatch { name, what: "its digest" });
        }
        if content.schema_version.is_some_and(|found| found != copy.schema_version) {
            return Err(BackupError::Mismatch { name, what: "its schema version" });
        }
        places.push(DatabaseEntry { part, offset, copy: copy.clone() });
    }
    Ok(VerifiedBackup { manifest, entries: places })
}

fn read_manifest(text: &[u8]) -> Result<Manifest, BackupError> {
    /// The fields that manifests of all versions have.
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    let head: Head = serde_json::from_slice(text)?;
    if head.format != FORMAT {
        return Err(BackupError::NotABackup("its manifest is another program's"));
    }
    if head.version != VERSION {
        return Err(BackupError::UnsupportedVersion(head.version));
    }
    Ok(serde_json::from_slice(text)?)
}

/// What an entry of the archive holds.
struct EntryContent {
    bytes: u64,
    sha256: String,
    /// As the database itself says; `None` if it is none.
    schema_version: Option<u32>,
}

fn examine(from: &mut impl Read, count: &impl Fn(u64)) -> io::Result<EntryContent> {
    let (mut digest, mut total) = (Sha256::new(), 0);
    let mut head = Vec::with_capacity(HEADER_BYTES);
    from.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut head)?;
    digest.update(&head);
    total += head.len() as u64;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let bytes = from.read(&mut buffer)?;
        if bytes == 0 {
            let sha256 = hex::encode(digest.finalize());
            return Ok(EntryContent { bytes: total, sha256, schema_version: schema_version(&head) });
        }
        digest.update(buffer.get(..bytes).unwrap_or_default());
        total += bytes as u64;
        count(bytes as u64);
    }
}

/// The `user_version` in the header of a SQLite file (<https://www.sqlite.org/fileformat2.html>, 1.3): its
/// schema's version.
fn schema_version(head: &[u8]) -> Option<u32> {
    const USER_VERSION: std::ops::Range<usize> = 60..64;
    let rest = head.starts_with(b"SQLite format 3\0").then(|| head.get(USER_VERSION)).flatten()?;
    Some(u32::from_be_bytes(rest.try_into().ok()?))
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
