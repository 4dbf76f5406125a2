//! A store that cannot be opened and waits for a restore.

use std::path::Path;

use crate::backup::{POSTGRES_RESTORE, Restored};
use crate::error::Error;
use crate::open_error::OpenError;
use crate::options::{Engine, StoreOptions};
use crate::sqlite::ClosedSqlite;

/// The path of a store that cannot be opened, since its file is damaged, too new or another program's. All
/// that can be done there is to restore a copy. It is locked against other processes meanwhile.
///
/// A store that can be opened is restored by [`Store::restore`](crate::Store::restore), while it is in use.
#[derive(Debug)]
pub struct OpenedForRestore(ClosedSqlite);

impl OpenedForRestore {
    pub(crate) async fn open(open: StoreOptions) -> Result<Self, OpenError> {
        let Engine::Sqlite { path } = open.engine.clone() else {
            return Err(Error::Unsupported(POSTGRES_RESTORE).into());
        };
        let opened = tokio::task::spawn_blocking(move || ClosedSqlite::open(path, open)).await;
        opened.unwrap_or_else(|panic| Err(OpenError::Engine(panic.into()))).map(Self)
    }

    /// Replaces the unusable file by the copy at `from`. The unusable file is kept beside it with its log, as
    /// `<file>.damaged-<time>`. `check_only` only checks whether the copy could be restored, and changes
    /// nothing. When this is dropped afterwards, the store can be opened. An interruption at any moment
    /// leaves a file that is still refused: it is never replaced by an empty database.
    ///
    /// # Errors
    /// [`Error::BadCopy`], [`Error::Full`], [`Error::File`], [`Error::Busy`].
    pub async fn restore(&self, from: &Path, check_only: bool) -> Result<Restored, Error> {
        self.0.restore(from, check_only).await
    }
}
