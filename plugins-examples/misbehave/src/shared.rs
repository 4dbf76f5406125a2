//! The state that all connections share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::{Mutex, Notify};

use crate::deferred::DeferredResults;
use crate::events::Events;
use crate::options::Options;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) calls: AtomicU64,
    pub(crate) declared: AtomicU64,
    pub(crate) one_at_a_time: Mutex<()>,
    pub(crate) late: DeferredResults,
    /// Its events, if it tells any.
    pub(crate) events: Option<Events>,
    /// Lines that calls put out, for who listens.
    pub(crate) notices: tokio::sync::broadcast::Sender<bytes::Bytes>,
    /// Notified of each call.
    pub(crate) called: Arc<Notify>,
}
