//! A copy of the whole database while others write to it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::halt::Halt;
use super::place::{self, beside};
use super::{SqliteStore, connection};
use crate::backup::BackupInfo;
use crate::error::Error;
use crate::open::Open;
use crate::time::Timestamp;

/// How much is copied between two looks at whether the copy is still wanted: 4 MiB, which takes milliseconds.
const PAGES_PER_STEP: std::ffi::c_int = 1024;
/// How many copies of what a restore replaced are kept. One is for a mistake, the others for a mistake about that one;
/// more would fill the disk of somebody who restores from a script.
const KEPT: usize = 3;

impl SqliteStore {
    pub(crate) async fn backup(&self, to: &Path) -> Result<BackupInfo, Error> {
        let (database, to, settings) = (self.path.clone(), to.to_owned(), self.settings.clone());
        let turn = self.turn().await?;
        self.halting(move |halt| {
            let _turn = turn;
            let schema_version = publish(&to, |draft| {
                copy(&database, draft, &settings, halt)?;
                // A backup that cannot be restored is found out now and not on the day it is needed.
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

/// Keeps what is in the database beside it, and forgets the oldest that was kept so.
pub(super) fn keep(database: &Path, settings: &Open) -> Result<PathBuf, Error> {
    let kept = beside(database, &format!("{BEFORE}{}", stamp()));
    publish(&kept, |draft| copy(database, draft, settings, &Halt::default()))?;
    Ok(kept)
}

const BEFORE: &str = ".before-restore-";

/// Removes all that were kept but the newest, and never the one that was just restored.
pub(super) fn forget_oldest(database: &Path, restored: &Path) {
    let (Some(directory), Some(name)) = (database.parent(), database.file_name()) else { return };
    let begins = format!("{}{BEFORE}", name.to_string_lossy());
    let Ok(files) = fs::read_dir(directory) else { return };
    let mut kept: Vec<PathBuf> = files
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with(&begins))
        .map(|file| file.path())
        .collect();
    kept.sort_unstable();
    let too_many = kept.len().saturating_sub(KEPT);
    for old in kept.iter().take(too_many).filter(|old| !place::same_file(old, restored)) {
        if let Err(error) = fs::remove_file(old) {
            tracing::warn!(path = %old.display(), %error, "what an earlier restore has kept cannot be removed");
        }
    }
}

/// The present in a file's name; names sort as their times.
pub(super) fn stamp() -> String {
    Timestamp::now().to_string().replace(['-', ':'], "")
}

/// Makes a file under another name and gives it its own when it is whole and on the disk. It is never put in the place of
/// another.
fn publish<T>(to: &Path, fill: impl FnOnce(&Path) -> Result<T, Error>) -> Result<T, Error> {
    let draft = beside(to, &format!(".new-{}", ulid::Ulid::generate()));
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(Error::file(&draft, "the file cannot be made"))?;
    let filled = fill(&draft).and_then(|filled| {
        made.sync_all().map_err(Error::file(&draft, "the file cannot be synced"))?;
        place::give_name(&draft, to).map_err(Error::file(to, "the file cannot get its name"))?;
        Ok(filled)
    });
    if filled.is_err() {
        // One that stays hurts nobody.
        let _gone = fs::remove_file(&draft);
    }
    filled
}

/// Copies a database as it is at one moment, with what is in its log, into an empty file.
fn copy(database: &Path, into: &Path, settings: &Open, halt: &Halt) -> Result<(), Error> {
    let source = connection::reader(database, settings)?;
    let mut draft = Connection::open_with_flags(into, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // It has no name yet, so nobody misses it if it is not finished; it is synced in the end.
    draft.pragma_update(None, "journal_mode", "off")?;
    draft.pragma_update(None, "synchronous", "off")?;
    {
        // As long as this one reads, each step sees the same moment. Without it, a step after somebody wrote begins
        // from the first page again.
        let moment = source.unchecked_transaction()?;
        moment.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let backup = Backup::new(&source, &mut draft)?;
        loop {
            if halt.is_set() {
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
    connection::single_file(into)
}

/// Makes sure that a file is on the disk.
pub(super) fn synced(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::file(path, "the file cannot be synced"))
}
