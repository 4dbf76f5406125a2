//! Passes on that a resource changed which somebody follows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::ServerNotification;
use talon_sdk::Notifier;
use tokio::sync::Notify;
use tokio::time::sleep;

/// The shortest time between two reports to the host, which merges them to one event a second anyway. So a server that never
/// stops costs one notice a second, and none of the notices of its calls is dropped for it.
const INTERVAL: Duration = Duration::from_secs(1);

/// Which resources are followed, and which of them changed. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ResourceUpdates(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wakeup: Notify,
}

/// No more than what is followed, which is bounded.
#[derive(Default)]
struct State {
    followed: BTreeSet<String>,
    changed: BTreeSet<String>,
}

impl ResourceUpdates {
    /// From now on exactly these are followed.
    pub(crate) fn follow(&self, uris: BTreeSet<String>) {
        let mut state = self.0.state.lock();
        state.changed.retain(|uri| uris.contains(uri));
        state.followed = uris;
    }

    /// Takes a notification of the server; whether it was one of these. One about a part of a followed resource is one about
    /// that resource. What nobody follows is dropped.
    pub(crate) fn take(&self, notification: &ServerNotification) -> bool {
        let ServerNotification::ResourceUpdatedNotification(updated) = notification else { return false };
        let mut state = self.0.state.lock();
        let State { followed, changed } = &mut *state;
        let before = changed.len();
        changed.extend(followed.iter().filter(|uri| is_part(&updated.params.uri, uri)).cloned());
        let any = changed.len() > before;
        drop(state);
        if any {
            self.0.wakeup.notify_one();
        }
        true
    }

    /// All of them may have changed: for a while the server could not say so.
    pub(crate) fn take_all(&self) {
        let mut state = self.0.state.lock();
        state.changed = state.followed.clone();
        drop(state);
        self.0.wakeup.notify_one();
    }

    /// Reports to the host, for ever.
    pub(crate) async fn report_to(self, host: Notifier) {
        loop {
            self.0.wakeup.notified().await;
            let changed = std::mem::take(&mut self.0.state.lock().changed);
            for uri in &changed {
                host.resource_updated(uri);
            }
            if !changed.is_empty() {
                sleep(INTERVAL).await;
            }
        }
    }
}

/// Whether an address is this resource, or a part of it: servers may name a part of what was subscribed to.
fn is_part(uri: &str, of: &str) -> bool {
    uri.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || of.ends_with('/') || rest.starts_with(['/', '#', '?']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn updated(uri: &str) -> ServerNotification {
        let notification = json!({"method": "notifications/resources/updated", "params": {"uri": uri}});
        serde_json::from_value(notification).expect("a notification")
    }

    fn changed(updates: &ResourceUpdates) -> Vec<String> {
        updates.0.state.lock().changed.iter().cloned().collect()
    }

    // Promises: MCP-54
    #[test]
    fn what_nobody_follows_is_not_passed_on_and_a_part_is_its_resource() {
        let updates = ResourceUpdates::default();
        assert!(updates.take(&updated("note://one")), "it is one of these, though nobody follows it");
        updates.follow(["note://one", "file:///dir/"].map(str::to_owned).into());
        for other in ["note://on", "note://one2", "file:///dir", "", "note://two"] {
            updates.take(&updated(other));
            assert_eq!(changed(&updates), Vec::<String>::new(), "{other}");
        }
        for (part, whole) in
            [("note://one", "note://one"), ("note://one#a", "note://one"), ("file:///dir/a", "file:///dir/")]
        {
            updates.follow(BTreeSet::new());
            updates.follow([whole.to_owned()].into());
            updates.take(&updated(part));
            assert_eq!(changed(&updates), [whole], "{part}");
        }
        updates.follow(BTreeSet::new());
        assert_eq!(changed(&updates), Vec::<String>::new(), "nobody waits for it any more");
    }

    // Promises: MCP-54
    #[tokio::test(start_paused = true)]
    async fn a_flood_of_the_server_is_one_report_a_second() {
        let (updates, host) = (ResourceUpdates::default(), Notifier::new());
        updates.follow(["x:1".to_owned()].into());
        tokio::spawn(updates.clone().report_to(host));
        let mut taken = 0;
        for _ in 0..100 {
            for _ in 0..100 {
                updates.take(&updated("x:1"));
            }
            tokio::task::yield_now().await;
            taken += u32::from(changed(&updates).is_empty());
            sleep(Duration::from_millis(100)).await;
        }
        assert!((5..=12).contains(&taken), "{taken} reports in ten seconds");
    }
}
