//! Functions that are called with events.

use std::sync::Arc;

use talon_proto::agent::BusEvent;

use super::bus::EventBus;
use super::kind_set::KindSet;
use super::mailbox::{Delivery, Filter};
use super::registry::TooManySubscribersError;

/// A handler of a bus, for [`EventBus::off`]. Dropping it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandlerHandle(u64);

impl EventBus {
    /// Calls a function with each event of these kinds, and with how many it missed, one after the other, on a task of its own. One that
    /// panics is not called again. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`TooManySubscribersError`]
    pub fn on(
        &self,
        kinds: impl Into<KindSet>,
        mut handler: impl FnMut(Delivery) + Send + 'static,
    ) -> Result<HandlerHandle, TooManySubscribersError> {
        let mut subscription = self.add(Filter { kinds: kinds.into(), sender: None }, false)?;
        let handle = HandlerHandle(subscription.id());
        tokio::spawn(async move {
            while let Some(delivery) = subscription.next().await {
                handler(delivery);
                // A long queue is no reason to keep others from this thread.
                tokio::task::yield_now().await;
            }
        });
        Ok(handle)
    }

    /// Calls a function with the next event of these kinds, and never again. It misses none, however many come.
    ///
    /// # Errors
    /// [`TooManySubscribersError`]
    pub fn once(
        &self,
        kinds: impl Into<KindSet>,
        handler: impl FnOnce(Arc<BusEvent>) + Send + 'static,
    ) -> Result<HandlerHandle, TooManySubscribersError> {
        let mut subscription = self.add(Filter { kinds: kinds.into(), sender: None }, true)?;
        let handle = HandlerHandle(subscription.id());
        tokio::spawn(async move {
            if let Some(Delivery::Event(event)) = subscription.next().await {
                handler(event);
            }
        });
        Ok(handle)
    }

    /// Has a handler not be called again, also with events that wait for it; a call that has begun goes on to its end. Nothing happens if
    /// it was over already.
    pub fn off(&self, handle: HandlerHandle) {
        self.remove(handle.0);
    }
}
