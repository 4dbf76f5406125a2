//! A text on its way to a conversation.

use std::time::Duration;

use talon_extensions::contract::{ChannelButton, ChannelOp, ChannelOutcome, ChannelRequest};
use tokio::time::{Instant, sleep};

use super::pending::PendingMessage;
use super::send::send;
use super::service::Channels;

/// The wait after the first failure. 2 s: most of what fails once works a moment later, and somebody waits.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// The longest wait. A minute: a service that is back has its answers within it.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A text on its way.
pub(super) struct OutboundText<'t> {
    pub(super) channel: &'t str,
    pub(super) conversation: &'t str,
    /// What identifies it.
    pub(super) id: &'t str,
    pub(super) text: &'t str,
    /// Below its last part.
    pub(super) buttons: &'t [ChannelButton],
}

/// How a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// All of it was sent.
    Sent,
    /// It was refused, or given up; the log says why.
    GivenUp,
    /// The agent ends.
    Interrupted,
}

impl Channels {
    /// Sends a text until all of it is sent. The answer of a message goes on where its row says that it is, which is kept up.
    pub(super) async fn deliver(
        &self,
        text: OutboundText<'_>,
        mut answers: Option<&mut PendingMessage>,
    ) -> Delivery {
        let mut sent = answers.as_ref().map_or(0, |message| message.sent);
        let OutboundText { channel, conversation, id, text, buttons } = text;
        let (began, mut attempt) = (Instant::now(), 0_u32);
        while let Some(left) = text.get(sent..).filter(|left| !left.trim().is_empty()) {
            let Some(entry) = self.entry(channel) else {
                tracing::warn!(channel, id, "an answer is not sent: its channel is not configured any more");
                return Delivery::GivenUp;
            };
            attempt = attempt.saturating_add(1);
            let request = ChannelRequest {
                id: if sent == 0 { id.to_owned() } else { format!("{id}.{sent}") },
                conversation: conversation.to_owned(),
                text: left.to_owned(),
                buttons: buttons.to_vec(),
                attempt,
                ..ChannelRequest::of(ChannelOp::Send)
            };
            let outcome = tokio::select! {
                outcome = send(&*self.host, &entry, &request) => outcome,
                () = self.ending.cancelled() => return Delivery::Interrupted,
            };
            let (reason, after) = match outcome {
                ChannelOutcome::Sent(bytes) => {
                    sent += bytes;
                    attempt = 0;
                    if let Some(message) = &mut answers {
                        message.sent = sent;
                        self.keep(message).await;
                    }
                    continue;
                }
                ChannelOutcome::Refused(reason) => {
                    tracing::error!(
                        channel,
                        id,
                        reason,
                        "an answer was refused by its channel; the session has it"
                    );
                    return Delivery::GivenUp;
                }
                ChannelOutcome::Retry { reason, after } => (reason, after.unwrap_or_default()),
            };
            if began.elapsed() >= entry.give_up_after.get() {
                tracing::error!(channel, id, attempt, reason, "an answer is given up; the session has it");
                return Delivery::GivenUp;
            }
            let wait = wait(attempt).max(after);
            tracing::warn!(channel, id, attempt, reason, "an answer is tried again in {} s", wait.as_secs());
            tokio::select! {
                () = sleep(wait) => {}
                () = self.ending.cancelled() => return Delivery::Interrupted,
            }
        }
        Delivery::Sent
    }
}

/// How long after a failed attempt the next one is.
pub(super) fn wait(attempt: u32) -> Duration {
    let doubled = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_WAIT.checked_mul(doubled).map_or(MAX_WAIT, |wait| wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        assert_eq!([1, 2, 5, 6, 40, u32::MAX].map(|attempt| wait(attempt).as_secs()), [2, 4, 32, 60, 60, 60]);
    }
}
