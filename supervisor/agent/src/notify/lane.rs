//! The attempts of one entry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use talon_event_bus::{EventBus, Subject};
use talon_extensions::NotificationEntry;
use talon_store::{Error, Notification, NotificationClaim, NotificationEnd, Outbox, Timestamp};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::backoff::{self, Next};
use super::notifier::Notifier;
use super::sink::{self, Attempt};
use super::update;
use crate::hooks::RoleHost;

/// The most attempts of an entry at once, while its sink works: a slow one gets what waits in a fair time, and is not
/// flooded. One at a time while it fails.
const MAX_PARALLEL: usize = 4;
/// How much longer a claim holds than the attempt may take: time to store how it ended.
const LEASE_RESERVE: Duration = Duration::from_secs(60);
/// The longest time between two looks: a clock that is set, or another agent on the same database that ends, is
/// noticed after it.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The time until another look after one that failed.
const RETRY_WAIT: Duration = Duration::from_secs(5);
/// How often the end of an attempt is tried to be stored. If all fail, the claim expires, and it is attempted again.
const MAX_END_TRIES: u32 = 5;

/// Delivers the notifications of one entry.
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) notifier: Arc<Notifier>,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) host: Arc<dyn RoleHost>,
    /// By what other agents know this process.
    pub(super) holder: String,
    pub(super) bus: EventBus,
}

impl Lane {
    /// Delivers until `stop`. What is under way then is given back.
    pub(super) async fn run(self, stop: CancellationToken) {
        let signal = self.notifier.lane_signal(&self.name);
        let mut attempts = FuturesUnordered::new();
        let mut claimed: BTreeMap<String, Notification> = BTreeMap::new();
        let (mut failures, mut rests_until) = (0_u32, Instant::now());
        while !stop.is_cancelled() {
            let parallel = if failures == 0 { MAX_PARALLEL } else { 1 };
            let mut wait = MAX_WAIT;
            let (at_once, wished) = signal.take();
            if at_once {
                rests_until = Instant::now();
            }
            let free = parallel.saturating_sub(attempts.len());
            if !wished.is_empty() || (free > 0 && rests_until <= Instant::now()) {
                match self.claim(&wished, free).await {
                    Ok((new, next)) => {
                        wait = next;
                        for (entry, notification) in new {
                            claimed.insert(notification.id.clone(), notification.clone());
                            attempts.push(self.attempt(entry, notification));
                        }
                    }
                    Err(error) => {
                        let error = talon_error_chain::error_chain(&error);
                        tracing::warn!(entry = self.name, error, "notifications cannot be looked at");
                        wait = RETRY_WAIT;
                    }
                }
            }
            let next = (Instant::now() + wait).max(rests_until);
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep_until(next) => {}
                () = signal.wait() => {}
                Some((id, delivered)) = attempts.next(), if !attempts.is_empty() => {
                    claimed.remove(&id);
                    failures = if delivered { 0 } else { failures.saturating_add(1) };
                    rests_until = Instant::now() + backoff::pause(failures);
                }
            }
        }
        drop(attempts);
        for notification in claimed.into_values() {
            self.end(&notification, NotificationEnd::Released).await;
        }
    }

    /// Claims those that are wished, and else at most `free` notifications that are due. Also returns how long until
    /// the next look.
    async fn claim(
        &self,
        wished: &[String],
        free: usize,
    ) -> Result<(Vec<(NotificationEntry, Notification)>, Duration), Error> {
        let Some(entry) = self.notifier.entry(&self.name) else { return Ok((Vec::new(), MAX_WAIT)) };
        let now = Timestamp::now();
        let claim = async |id: &String| {
            let (id, holder) = (id.clone(), self.holder.clone());
            let claim = NotificationClaim { id, holder, lease: entry.deadline() + LEASE_RESERVE, now };
            Ok::<_, Error>(self.outbox.claim(claim).await?.map(|claimed| (entry.clone(), claimed)))
        };
        let mut claimed = Vec::new();
        for id in wished {
            claimed.extend(claim(id).await?);
        }
        let left = free.saturating_sub(claimed.len());
        if left == 0 {
            // The end of one of them has it look again.
            return Ok((claimed, MAX_WAIT));
        }
        let due = self.outbox.due(&self.name, now, u32::try_from(left).unwrap_or(u32::MAX)).await?;
        let mut of_others = false;
        for notification in &due {
            let new = claim(&notification.id).await?;
            of_others |= new.is_none();
            claimed.extend(new);
        }
        if of_others {
            // Another agent has some of them; there may be more.
            return Ok((claimed, Duration::ZERO));
        }
        let next = self.outbox.next_due(&self.name, now).await?;
        let wait = next.map_or(MAX_WAIT, |next| {
            Duration::from_millis(next.as_millis().saturating_sub(now.as_millis()).unsigned_abs())
        });
        Ok((claimed, wait.min(MAX_WAIT)))
    }

    /// Makes an attempt and stores how it ended. Returns the id, and whether the sink works.
    async fn attempt(&self, entry: NotificationEntry, notification: Notification) -> (String, bool) {
        self.bus.emit(Subject::NOBODY, update::sending(&notification));
        let attempt = sink::attempt(&*self.host, &entry, &notification).await;
        let delivered = !matches!(attempt, Attempt::Failed { .. });
        let end = ended(&entry, &notification, attempt, Timestamp::now());
        self.end(&notification, end).await;
        self.notifier.attempt_ended();
        (notification.id, delivered)
    }

    async fn end(&self, notification: &Notification, end: NotificationEnd) {
        let (id, attempt) = (&notification.id, notification.attempt);
        for tried in 1..=MAX_END_TRIES {
            match self.outbox.end(&notification.handle(), end.clone(), Timestamp::now()).await {
                Ok(is_ours) => {
                    log(&self.name, id, attempt, is_ours, &end);
                    if is_ours {
                        self.bus.emit(Subject::NOBODY, update::ended(notification, &end));
                    }
                    return;
                }
                Err(error) if tried == MAX_END_TRIES || !error.is_retryable() => {
                    let error = talon_error_chain::error_chain(&error);
                    tracing::error!(
                        entry = self.name,
                        notification = id,
                        error,
                        "the end of an attempt cannot be stored; it is made again"
                    );
                    return;
                }
                Err(_) => sleep(Duration::from_secs(u64::from(tried))).await,
            }
        }
    }
}

/// How an attempt ends.
fn ended(
    entry: &NotificationEntry,
    notification: &Notification,
    attempt: Attempt,
    now: Timestamp,
) -> NotificationEnd {
    match attempt {
        Attempt::Delivered => NotificationEnd::Delivered,
        Attempt::Refused(reason) => NotificationEnd::Refused(reason),
        Attempt::Failed { reason, retry_after } => {
            let due = notification.due_at;
            match backoff::next(entry, notification.attempt, due, now, retry_after, random()) {
                Next::Retry(at) => NotificationEnd::Retry { note: reason, at },
                Next::GiveUp => NotificationEnd::GivenUp(reason),
            }
        }
    }
}

fn log(entry: &str, notification: &str, attempt: u32, is_ours: bool, end: &NotificationEnd) {
    if !is_ours {
        tracing::warn!(
            entry,
            notification,
            "an attempt ended here, and another has claimed the notification"
        );
        return;
    }
    match end {
        NotificationEnd::Delivered => {
            tracing::info!(entry, notification, attempt, "a notification was delivered")
        }
        NotificationEnd::Refused(reason) => {
            tracing::warn!(entry, notification, reason, "a notification was refused by its sink");
        }
        NotificationEnd::GivenUp(reason) => {
            tracing::error!(
                entry,
                notification,
                attempt,
                reason,
                "a notification is given up: `talon notification retry` has it tried again"
            );
        }
        NotificationEnd::Retry { note, .. } => {
            tracing::warn!(
                entry,
                notification,
                attempt,
                reason = note,
                "a notification is tried again later"
            );
        }
        NotificationEnd::Released => tracing::info!(entry, notification, "a delivery is interrupted"),
    }
}

/// A number between 0 and 1; in the middle if the system has none.
fn random() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
