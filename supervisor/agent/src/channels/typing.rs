//! That an answer is being written, shown in its conversation.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use talon_extensions::contract::{ChannelFeature, ChannelOp, ChannelOutcome, ChannelRequest};
use tokio::time::{MissedTickBehavior, interval};

use super::send::send;
use super::service::Channels;

/// How often it is shown. 4 s: Telegram shows it for 5 s.
const INTERVAL: Duration = Duration::from_secs(4);

impl Channels {
    /// Shows in a conversation that an answer is being written, for as long as it is polled, and not while a person is waited for.
    pub(super) async fn show_typing(
        &self,
        channel: &str,
        conversation: &str,
        waits: &AtomicBool,
    ) -> Infallible {
        let request =
            ChannelRequest { conversation: conversation.to_owned(), ..ChannelRequest::of(ChannelOp::Typing) };
        let mut every = interval(INTERVAL);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            if waits.load(Ordering::Relaxed) || !self.supports(channel, ChannelFeature::Typing) {
                continue;
            }
            let Some(entry) = self.entry(channel) else { continue };
            // The next one may do better; the answer does not depend on it.
            if let ChannelOutcome::Retry { reason, .. } | ChannelOutcome::Refused(reason) =
                send(&*self.host, &entry, &request).await
            {
                tracing::debug!(channel, reason, "that an answer is being written is not shown");
            }
        }
    }
}
