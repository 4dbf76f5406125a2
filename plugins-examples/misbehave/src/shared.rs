//! The state that all connections share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::{Mutex, Notify};

use crate::deferred::DeferredResults;
use crate::options::Options;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) calls: AtomicU64,
    pub(crate) declared: AtomicU64,
    pub(crate) one_at_a_time: Mutex<()>,
    pub(crate) late: DeferredResults,
    /// Notified of each call.
    pub(crate) called: Arc<Notify>,
}
