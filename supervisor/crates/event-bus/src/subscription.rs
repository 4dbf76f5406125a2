//! The reading end of a subscriber.

use std::sync::Arc;
use std::task::Poll;

use super::mailbox::{Delivery, Mailbox};
use super::registry::Registry;

/// Events as they come. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    registry: Arc<Registry>,
    id: u64,
    mailbox: Arc<Mailbox>,
}

impl Subscription {
    pub(super) fn new(registry: Arc<Registry>, id: u64, mailbox: Arc<Mailbox>) -> Self {
        Self { registry, id, mailbox }
    }

    /// The next event, or how many are missing before it; `None` if nothing comes any more. Cancel safe.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.mailbox.next().await
    }

    /// What is there already.
    pub fn try_next(&mut self) -> Option<Delivery> {
        match self.mailbox.take() {
            Poll::Ready(next) => next,
            Poll::Pending => None,
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.registry.remove(self.id);
    }
}
