//! Replaces the contents of the database by a copy, while it is in use.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::cancellation::Cancellation;
use super::draft::Draft;
use super::{SqliteStore, backup};
use crate::backup::Restored;
use crate::error::Error;
use crate::options::StoreOptions;

impl SqliteStore {
    pub(crate) async fn restore(&self, from: &Path, check_only: bool) -> Result<Restored, Error> {
        let (database, settings, copy) = (self.path.clone(), self.settings.clone(), from.to_owned());
        let turn = self.acquire_turn().await?;
        let drafted =
            move |halt: &Cancellation| Ok((Draft::copy_from(&copy, &database, &settings, halt)?, turn));
        let (draft, turn) = self.run_cancellable(drafted).await?;
        let mut restored = draft.restored();
        if !check_only {
            self.expect_memories();
            let (database, settings, from) = (self.path.clone(), self.settings.clone(), from.to_owned());
            let replaced = self.writer.run_exclusive(move |live| {
                let _turn = turn;
                replace(live, &draft, &database, &from, &settings)
            });
            restored.kept = Some(replaced.await?);
        }
        Ok(restored)
    }
}

impl Draft {
    pub(super) fn restored(&self) -> Restored {
        Restored {
            schema_version: SqliteStore::schema_version(),
            copy_version: self.copy_version,
            bytes: self.bytes,
            kept: None,
        }
    }
}

/// Uses one transaction of the database: readers see all of the old or all of the new, and a crash leaves the
/// old.
fn replace(
    live: &mut Connection,
    draft: &Draft,
    database: &Path,
    from: &Path,
    settings: &StoreOptions,
) -> Result<PathBuf, Error> {
    let copy = draft.reader(settings)?;
    let backup = Backup::new(&copy, live)?;
    let step = |pages| match backup.step(pages) {
        Ok(StepResult::Busy | StepResult::Locked) => Err(Error::Busy(settings.busy_timeout)),
        Ok(step) => Ok(step),
        Err(error) => Err(Error::from(error)),
    };
    // Copies no page yet, but takes the write lock: so the kept copy includes the last write before the
    // restore, also of other processes.
    step(0)?;
    let kept = backup::keep_replaced(database, settings)?;
    // Nothing is committed until the last step; dropping it before that rolls back.
    let replaced = loop {
        match step(-1) {
            Ok(StepResult::Done) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    drop(backup);
    if let Err(error) = replaced {
        // Fails only for reasons that the database itself reports as well.
        let _gone = fs::remove_file(&kept);
        return Err(error);
    }
    backup::forget_oldest(database, from);
    // The log has grown to the size of the database. What readers still use is kept until later.
    if let Err(error) = live.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        tracing::debug!(%error, "the log is put into the database later");
    }
    tracing::info!(from = %from.display(), kept = %kept.display(), "the database was restored from a copy");
    Ok(kept)
}
