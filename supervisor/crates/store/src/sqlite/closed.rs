//! The path of a database that cannot be opened, where a copy is restored.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::backup::timestamp;
use super::cancellation::Cancellation;
use super::connection::refuse_old_sqlite;
use super::database_file::{self, sibling_path};
use super::draft::Draft;
use super::lock::Lock;
use crate::backup::Restored;
use crate::error::Error;
use crate::open_error::OpenError;
use crate::options::StoreOptions;

/// An unusable database, locked exclusively, so that no process opens it meanwhile.
#[derive(Debug)]
pub(crate) struct ClosedSqlite {
    path: PathBuf,
    directory: PathBuf,
    settings: StoreOptions,
    _lock: Lock,
}

impl ClosedSqlite {
    pub(crate) fn open(path: PathBuf, settings: StoreOptions) -> Result<Self, OpenError> {
        refuse_old_sqlite()?;
        let directory = database_file::prepare_directory(&path)?;
        let lock = Lock::take(&path, true)?;
        Ok(Self { path, directory, settings, _lock: lock })
    }

    pub(crate) async fn restore(&self, from: &Path, check_only: bool) -> Result<Restored, Error> {
        let (halt, _wanted) = Cancellation::default().child();
        let (database, settings, copy) = (self.path.clone(), self.settings.clone(), from.to_owned());
        let (directory, from) = (self.directory.clone(), from.to_owned());
        let done = tokio::task::spawn_blocking(move || {
            let draft = Draft::copy_from(&copy, &database, &settings, &halt)?;
            let mut restored = draft.restored();
            if !check_only {
                restored.kept = replace(&draft, &database, &directory)?;
                tracing::info!(from = %from.display(), "the database was restored from a copy");
            }
            Ok(restored)
        });
        done.await.unwrap_or_else(|panic| Err(Error::Engine(panic.into())))
    }
}

/// Replaces the database in an order that leaves every intermediate state safe after a crash: the unusable
/// file gets a second name before it loses its first. Until the copy has that name, an empty file has it,
/// which is refused like the damaged one and never mistaken for a new database. The log is removed before the
/// copy comes, since SQLite would apply it to the copy.
fn replace(draft: &Draft, database: &Path, directory: &Path) -> Result<Option<PathBuf>, Error> {
    let aside = sibling_path(database, &format!(".damaged-{}", timestamp()));
    let sync = || File::open(directory).and_then(|directory| directory.sync_all());
    let moved = || -> io::Result<bool> {
        let mut found = false;
        for suffix in ["", "-wal", "-shm"] {
            match fs::hard_link(sibling_path(database, suffix), sibling_path(&aside, suffix)) {
                Ok(()) => found = true,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        sync()?;
        let empty = sibling_path(database, ".empty");
        File::create(&empty)?;
        fs::rename(&empty, database)?;
        sync()?;
        for suffix in ["-wal", "-shm"] {
            match fs::remove_file(sibling_path(database, suffix)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        sync()?;
        fs::rename(draft.path(), database)?;
        sync()?;
        Ok(found)
    };
    let found = moved().map_err(Error::file(database, "the copy cannot be put in its place"))?;
    Ok(found.then_some(aside))
}
