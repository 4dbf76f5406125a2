//! A lane for each configured entry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use talon_event_bus::EventBus;
use talon_store::{NotificationClaim, NotificationEnd, Outbox, Timestamp};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use ulid::Ulid;

use super::lane::Lane;
use super::notifier::Notifier;
use crate::hooks::RoleHost;

/// How often old notifications are deleted.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3600);
/// How long finished notifications are kept.
const KEPT_TIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The most delivered and refused notifications of an entry that are kept.
const KEPT: u32 = 1000;
/// How long notifications of an entry wait that is not configured any more: time to correct a mistake.
const ORPHAN_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The most of them that are given up at once; the rest follow an hour later.
const MAX_ORPHANS: u32 = 1000;

/// Delivers what is in the store.
pub(crate) struct Lanes {
    notifier: Arc<Notifier>,
    outbox: Arc<dyn Outbox>,
    host: Arc<dyn RoleHost>,
    holder: String,
    bus: EventBus,
}

impl Lanes {
    pub(crate) fn new(
        notifier: Arc<Notifier>,
        outbox: Arc<dyn Outbox>,
        host: Arc<dyn RoleHost>,
        bus: EventBus,
    ) -> Self {
        Self { notifier, outbox, host, holder: Ulid::generate().to_string(), bus }
    }

    /// Delivers until `ending`, and returns when what was under way is given back.
    pub(crate) async fn run(self, ending: CancellationToken) {
        // Where this process has the store alone, nobody delivers anything any more.
        if let Err(error) = self.outbox.expire_leases().await {
            let error = talon_error_chain::error_chain(&error);
            tracing::warn!(error, "old claims of notifications cannot be ended");
        }
        let writing = tokio::spawn(Arc::clone(&self.notifier).write_events(ending.clone()));
        let tasks = TaskTracker::new();
        let mut lanes: BTreeMap<String, CancellationToken> = BTreeMap::new();
        let mut pruning = interval(PRUNE_INTERVAL);
        pruning.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let names = self.notifier.entry_names();
            lanes.retain(|name, stop| {
                let stays = names.contains(name);
                if !stays {
                    stop.cancel();
                }
                stays
            });
            for name in names {
                lanes.entry(name.clone()).or_insert_with(|| {
                    let stop = ending.child_token();
                    tasks.spawn(self.lane(name).run(stop.clone()));
                    stop
                });
            }
            tokio::select! {
                () = ending.cancelled() => break,
                () = self.notifier.configured() => {}
                _ = pruning.tick() => self.prune().await,
            }
        }
        if let Err(error) = writing.await {
            tracing::error!(%error, "events are not written any more");
        }
        tasks.close();
        tasks.wait().await;
    }

    fn lane(&self, name: String) -> Lane {
        Lane {
            name,
            notifier: Arc::clone(&self.notifier),
            outbox: Arc::clone(&self.outbox),
            host: Arc::clone(&self.host),
            holder: self.holder.clone(),
            bus: self.bus.clone(),
        }
    }

    async fn prune(&self) {
        let old = Timestamp::now().before(KEPT_TIME);
        let pruned = async {
            let given_up = self.give_up_orphans().await?;
            Ok::<_, talon_store::Error>((given_up, self.outbox.prune(KEPT, old).await?))
        };
        match pruned.await {
            Ok((0, 0)) => {}
            Ok((given_up, deleted)) => {
                tracing::info!(given_up, deleted, "old notifications are given up or deleted");
            }
            Err(error) => {
                let error = talon_error_chain::error_chain(&error);
                tracing::warn!(error, "old notifications cannot be deleted");
            }
        }
    }

    /// Gives up what waits for entries that are not configured any more.
    async fn give_up_orphans(&self) -> Result<u64, talon_store::Error> {
        let names = self.notifier.entry_names();
        let (now, mut given_up) = (Timestamp::now(), 0);
        let old = now.before(ORPHAN_TIME);
        for entry in self.outbox.open_entries().await?.into_iter().filter(|entry| !names.contains(entry)) {
            for orphan in self.outbox.due(&entry, now, MAX_ORPHANS).await? {
                if orphan.created_at > old || orphan.due_at > old {
                    continue;
                }
                let (holder, lease) = (self.holder.clone(), Duration::from_secs(60));
                let claim = NotificationClaim { id: orphan.id, holder, lease, now };
                if let Some(claimed) = self.outbox.claim(claim).await? {
                    let end = NotificationEnd::GivenUp("its entry is not configured any more".to_owned());
                    given_up += u64::from(self.outbox.end(&claimed.handle(), end, now).await?);
                }
            }
        }
        Ok(given_up)
    }
}
