//! A shared value that is compared by identity.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A shared value that the host passes along with a call. Equal only to itself; its `Debug` shows nothing of
/// it.
pub struct ArcById<T: ?Sized>(Arc<T>);

impl<T: ?Sized> ArcById<T> {
    /// Wraps the value.
    #[must_use]
    pub fn new(it: Arc<T>) -> Self {
        Self(it)
    }
}

impl<T: ?Sized> Deref for ArcById<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Clone for ArcById<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> PartialEq for ArcById<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> fmt::Debug for ArcById<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArcById").finish_non_exhaustive()
    }
}
