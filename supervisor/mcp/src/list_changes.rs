//! Which lists of plugins have changed, for clients that are notified of it.

use std::sync::Arc;

use rmcp::model::SubscriptionFilter;
use talon_proto::host::Event;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;

/// The supervisor's event of changed lists.
pub(crate) const LISTS_EVENT: &str = "lists_changed";
/// Changes that a slow client may lag behind: one of each plugin of a large installation. What it misses counts as
/// a change of all lists.
pub(crate) const CHANGES_CAPACITY: usize = 256;

/// The lists that have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
}

impl ListChanges {
    /// Of an event of the supervisor.
    pub(crate) fn of_event(event: &Event) -> Self {
        let says = |key: &str| event.fields.get(key).is_some_and(|value| value == "true");
        Self { tools: false, resources: says("resources"), prompts: says("prompts") }
    }

    /// Between two catalogs. Any other provider may list something else.
    fn between(before: &Catalog, after: &Catalog) -> Self {
        let lists = before.providers != after.providers;
        Self { tools: before.tools != after.tools, resources: lists, prompts: lists }
    }

    /// Those that a client wants to know of.
    pub(crate) fn within(self, wanted: &SubscriptionFilter) -> Self {
        Self {
            tools: self.tools && wanted.tools_list_changed == Some(true),
            resources: self.resources && wanted.resources_list_changed == Some(true),
            prompts: self.prompts && wanted.prompts_list_changed == Some(true),
        }
    }

    pub(crate) fn any(self) -> bool {
        self.tools || self.resources || self.prompts
    }
}

/// Follows the changes for one client.
pub(crate) struct ListFollower {
    catalog: watch::Receiver<Arc<Catalog>>,
    /// The catalog up to which changes were reported.
    pub(crate) seen: Arc<Catalog>,
    changes: broadcast::Receiver<ListChanges>,
    closing: CancellationToken,
}

impl ListFollower {
    pub(crate) fn new(
        mut catalog: watch::Receiver<Arc<Catalog>>,
        changes: broadcast::Receiver<ListChanges>,
        closing: CancellationToken,
    ) -> Self {
        let seen = Arc::clone(&catalog.borrow_and_update());
        Self { catalog, seen, changes, closing }
    }

    /// The next changes. `None`: there will be none any more. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<ListChanges> {
        loop {
            let changes = tokio::select! {
                () = self.closing.cancelled() => return None,
                changed = self.catalog.changed() => {
                    changed.ok()?;
                    let now = Arc::clone(&self.catalog.borrow_and_update());
                    let changes = ListChanges::between(&self.seen, &now);
                    self.seen = now;
                    changes
                }
                changes = self.changes.recv() => match changes {
                    Ok(changes) => changes,
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        ListChanges { tools: true, resources: true, prompts: true }
                    }
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
            };
            if changes.any() {
                return Some(changes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_does_not_want_is_no_change_for_it() {
        let fields = [("resources", "true"), ("prompts", "false")];
        let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let changes = ListChanges::of_event(&Event { fields, ..Event::default() });
        assert_eq!(changes, ListChanges { resources: true, ..ListChanges::default() });
        let mut wanted = SubscriptionFilter::new();
        wanted.prompts_list_changed = Some(true);
        assert!(!changes.within(&wanted).any());
        wanted.resources_list_changed = Some(true);
        assert!(changes.within(&wanted).resources);
    }

    #[tokio::test]
    async fn a_client_that_is_too_slow_lists_everything_again() {
        let (sender, changes) = broadcast::channel(1);
        let (_catalog, watched) = watch::channel(Arc::<Catalog>::default());
        let mut follower = ListFollower::new(watched, changes, CancellationToken::new());
        for _ in 0..3 {
            sender.send(ListChanges { prompts: true, ..ListChanges::default() }).unwrap();
        }
        let all = ListChanges { tools: true, resources: true, prompts: true };
        assert_eq!(follower.next().await, Some(all));
        assert_eq!(follower.next().await, Some(ListChanges { prompts: true, ..ListChanges::default() }));
        drop(sender);
        assert_eq!(follower.next().await, None);
    }
}
