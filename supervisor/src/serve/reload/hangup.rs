//! SIGHUP: the configuration is read anew.
//!
//! It is waited for from the very start, so that it never ends the process. One that comes during the start is kept and carried
//! out once that is over; several that come while one is carried out are one more. While the supervisor stops it does nothing.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;

use super::Reloader;

/// The signals that have come and were not acted upon.
pub(in crate::serve) struct Hangups(Signal);

impl Hangups {
    /// From now on the signal is kept.
    pub(in crate::serve) fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Acts upon those that came and those that come, until what is returned is dropped.
    pub(in crate::serve) fn obey(mut self, reloader: Reloader) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(async move {
            while self.0.recv().await.is_some() {
                tracing::info!("SIGHUP: the configuration is read anew");
                reloader.reload_by_itself("SIGHUP").await;
            }
        }))
    }
}
