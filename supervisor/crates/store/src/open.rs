//! Opens a store with the engine that its options name.

use crate::open_error::OpenError;
use crate::opened_for_restore::OpenedForRestore;
use crate::options::StoreOptions;
use crate::store::Store;

impl StoreOptions {
    /// Opens the store, and brings its schema to this version.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(self) -> Result<Store, OpenError> {
        Store::open(self).await
    }

    /// Opens a store for a restore only, after [`StoreOptions::open`] refused it as [`OpenError::Damaged`],
    /// [`OpenError::Foreign`] or [`OpenError::Newer`]. It is locked against others meanwhile, as with
    /// [`StoreOptions::exclusive`].
    ///
    /// # Errors
    /// See [`OpenError`]. PostgreSQL does not support this:
    /// [`Error::Unsupported`](crate::Error::Unsupported).
    pub async fn open_for_restore(self) -> Result<OpenedForRestore, OpenError> {
        OpenedForRestore::open(self).await
    }
}
