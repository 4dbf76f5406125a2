//! The calls that open channels: with them a plugin gets what it needs to listen, such as its credential.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use talon_extensions::ChannelEntry;
use talon_extensions::contract::{ChannelOp, ChannelOutcome, ChannelReply, ChannelRequest};
use tokio::time::{Instant, sleep_until};

use super::outbound::wait;
use super::send::{call, read};
use super::service::Channels;

/// How often a channel that is open is opened again. 5 min: its plugin asks by itself when it has started, and this is for one
/// that could not.
const INTERVAL: Duration = Duration::from_secs(300);
/// How often it is looked for channels that the configuration has now.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// When a channel is opened next, and how often in a row that failed.
#[derive(Debug, Clone, Copy)]
struct Opening {
    due: Instant,
    failures: u32,
}

impl Channels {
    /// Keeps all channels of the configuration open until the agent ends.
    pub(super) async fn keep_open(self: Arc<Self>) {
        let mut openings = BTreeMap::<String, Opening>::new();
        while !self.ending.is_cancelled() {
            let (entries, now) = (self.entries(), Instant::now());
            openings.retain(|name, _| entries.iter().any(|entry| entry.name == *name));
            for name in std::mem::take(&mut *self.closed.lock()) {
                openings.remove(&name);
            }
            let is_due =
                |entry: &&ChannelEntry| openings.get(&entry.name).is_none_or(|opening| opening.due <= now);
            let due: Vec<&ChannelEntry> = entries.iter().filter(is_due).collect();
            let opened = tokio::select! {
                opened = join_all(due.iter().map(|entry| self.open(entry))) => opened,
                () = self.ending.cancelled() => return,
            };
            for (entry, opened) in due.iter().zip(opened) {
                let before = openings.get(&entry.name).map_or(0, |opening| opening.failures);
                let failures = if opened { 0 } else { before.saturating_add(1) };
                let due = Instant::now() + if opened { INTERVAL } else { wait(failures) };
                openings.insert(entry.name.clone(), Opening { due, failures });
            }
            let next = openings.values().map(|opening| opening.due).min();
            let look = Instant::now() + LOOK_INTERVAL;
            tokio::select! {
                () = sleep_until(next.map_or(look, |next| next.min(look))) => {}
                () = self.wake_opener.notified() => {}
                () = self.ending.cancelled() => return,
            }
        }
    }

    /// Opens a channel. Returns whether it is open.
    async fn open(&self, entry: &ChannelEntry) -> bool {
        let request = ChannelRequest::of(ChannelOp::Open);
        let channel = &entry.name;
        let opened = call(&*self.host, entry, &request).await;
        let features = opened.as_ref().map(ChannelReply::features).unwrap_or_default();
        match opened.map_or_else(|failed| failed, |structured| read(&structured, "")) {
            ChannelOutcome::Sent(_) => {
                self.features.lock().insert(channel.clone(), features);
                tracing::debug!(channel, "a channel is open");
                true
            }
            ChannelOutcome::Retry { reason, .. } | ChannelOutcome::Refused(reason) => {
                tracing::warn!(channel, reason, "a channel cannot be opened; it is tried again");
                false
            }
        }
    }
}
