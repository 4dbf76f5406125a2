//! Copies the whole database while others write to it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::cancellation::Cancellation;
use super::database_file::{self, sibling_path};
use super::{SqliteStore, connection};
use crate::backup::BackupInfo;
use crate::error::Error;
use crate::options::StoreOptions;
use crate::time::Timestamp;

/// How much is copied between two checks for cancellation: 4 MiB, which takes milliseconds.
const PAGES_PER_STEP: std::ffi::c_int = 1024;
/// How many databases replaced by a restore are kept: one against a mistake, the others against mistakes in
/// correcting it; more would fill the disk if a script restores repeatedly.
const KEPT_COPIES: usize = 3;

impl SqliteStore {
    pub(crate) async fn backup(&self, to: &Path) -> Result<BackupInfo, Error> {
        let (database, to, settings) = (self.path.clone(), to.to_owned(), self.settings.clone());
        let turn = self.acquire_turn().await?;
        self.run_cancellable(move |halt| {
            let _turn = turn;
            let schema_version = publish(&to, |draft| {
                copy(&database, draft, &settings, halt)?;
                // An unusable backup is to be detected now, and not on the day it is needed.
                let examined = connection::examiner(draft, &settings, halt)
                    .and_then(|copied| connection::examine(&copied, draft));
                examined.map_err(|error| match error {
                    Error::BadCopy { why, .. } => Error::Corrupt(why.into()),
                    other => other,
                })
            })?;
            let made = fs::metadata(&to).map_err(Error::file(&to, "the backup cannot be seen"))?;
            Ok(BackupInfo { schema_version, bytes: made.len() })
        })
        .await
    }
}

/// Keeps a copy of the database beside it, and removes the oldest such copy.
pub(super) fn keep_replaced(database: &Path, settings: &StoreOptions) -> Result<PathBuf, Error> {
    let kept = sibling_path(database, &format!("{KEPT_INFIX}{}", timestamp()));
    publish(&kept, |draft| copy(database, draft, settings, &Cancellation::default()))?;
    Ok(kept)
}

const KEPT_INFIX: &str = ".before-restore-";

/// Removes all but the newest of the kept copies, and never the one that was just restored.
pub(super) fn forget_oldest(database: &Path, restored: &Path) {
    let (Some(directory), Some(name)) = (database.parent(), database.file_name()) else { return };
    let begins = format!("{}{KEPT_INFIX}", name.to_string_lossy());
    let Ok(files) = fs::read_dir(directory) else { return };
    let mut kept: Vec<PathBuf> = files
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with(&begins))
        .map(|file| file.path())
        .collect();
    kept.sort_unstable();
    let too_many = kept.len().saturating_sub(KEPT_COPIES);
    for old in kept.iter().take(too_many).filter(|old| !database_file::same_file(old, restored)) {
        if let Err(error) = fs::remove_file(old) {
            tracing::warn!(path = %old.display(), %error, "what an earlier restore has kept cannot be removed");
        }
    }
}

/// The current time for a file's name; names sort by time.
pub(super) fn timestamp() -> String {
    Timestamp::now().to_string().replace(['-', ':'], "")
}

/// Creates a file under a temporary name, and renames it when it is complete and on the disk. Never replaces
/// an existing file.
fn publish<T>(to: &Path, fill: impl FnOnce(&Path) -> Result<T, Error>) -> Result<T, Error> {
    let draft = sibling_path(to, &format!(".new-{}", ulid::Ulid::generate()));
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(Error::file(&draft, "the file cannot be made"))?;
    let filled = fill(&draft).and_then(|filled| {
        made.sync_all().map_err(Error::file(&draft, "the file cannot be synced"))?;
        database_file::publish_as(&draft, to).map_err(Error::file(to, "the file cannot get its name"))?;
        Ok(filled)
    });
    if filled.is_err() {
        // A remaining temporary file does no harm.
        let _gone = fs::remove_file(&draft);
    }
    filled
}

/// Copies a snapshot of a database, including its log, into an empty file.
fn copy(database: &Path, into: &Path, settings: &StoreOptions, halt: &Cancellation) -> Result<(), Error> {
    let source = connection::reader(database, settings)?;
    let mut draft = Connection::open_with_flags(into, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // An incomplete file never gets its name, so it needs no journal and no syncs; it is synced at the end.
    draft.pragma_update(None, "journal_mode", "off")?;
    draft.pragma_update(None, "synchronous", "off")?;
    {
        // As long as this reads, each step sees the same snapshot. Without it, a step after a write would
        // start again at the first page.
        let moment = source.unchecked_transaction()?;
        moment.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let backup = Backup::new(&source, &mut draft)?;
        loop {
            if halt.is_cancelled() {
                return Err(Error::Closed);
            }
            match backup.step(PAGES_PER_STEP)? {
                StepResult::Done => break,
                StepResult::More => {}
                _ => return Err(Error::Busy(settings.busy_timeout)),
            }
        }
    }
    draft.close().map_err(|(_, error)| error)?;
    connection::drop_wal(into)
}

/// Syncs a file to the disk.
pub(super) fn synced(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::file(path, "the file cannot be synced"))
}
