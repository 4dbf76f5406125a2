//! What the action of a channel is asked, what it answers, and what its plugin tells as events.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::notification::{DeliveryStatus, NotificationReply};

/// The topic of the event of a message.
pub const MESSAGE_TOPIC: &str = "channel.message";
/// The topic of the event of a button that somebody pressed.
pub const BUTTON_TOPIC: &str = "channel.button";
/// The topic of the event by which a plugin that has started asks to be opened.
pub const CLOSED_TOPIC: &str = "channel.closed";

/// The arguments of the action of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelRequest {
    /// What to do.
    pub op: ChannelOp,
    /// Of `send`: what identifies the message, the same in every attempt.
    #[serde(default)]
    pub id: String,
    /// Of `send`: where to, as an event of the plugin's said with its field `conversation`.
    #[serde(default)]
    pub conversation: String,
    /// Of `send`: the text, or what of it was not sent yet.
    #[serde(default)]
    pub text: String,
    /// Of `send`: buttons below the text. A channel without buttons refuses nothing: it sends the text alone.
    #[serde(default)]
    pub buttons: Vec<ChannelButton>,
    /// Of `send`: the number of the attempt, from 1.
    #[serde(default)]
    pub attempt: u32,
}

/// What a channel is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelOp {
    /// Be ready: what the plugin needs to listen, such as a credential, comes with this call. It comes again and again, and may find that
    /// it listens already.
    Open,
    /// Send a text.
    Send,
}

/// A button below a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelButton {
    /// What the event says of it that comes when it is pressed; at most 64 letters, digits and `:-_`.
    pub id: String,
    /// What stands on it.
    pub label: String,
}

/// The structured answer of the action of a channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelReply {
    /// What became of it.
    pub status: DeliveryStatus,
    /// Why, in a sentence for the operator. More than 500 characters are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `retry`: the least time until the next attempt, in seconds; at most an hour counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<f64>,
    /// With `delivered`: how many bytes of the text were sent, if the service takes no more in one message. The rest is sent by
    /// another call. Left out: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
}

/// What became of a request to a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelOutcome {
    /// So many bytes of the text were sent.
    Sent(usize),
    /// It may be tried again.
    Retry {
        /// Why.
        reason: String,
        /// The least time until then.
        after: Option<Duration>,
    },
    /// It is not tried again.
    Refused(String),
}

impl ChannelReply {
    /// Reads an answer, and compares it with the text.
    ///
    /// # Errors
    /// A sentence that repeats little of the answer, if it is none of a channel, or says that a part was sent which is none of the text.
    pub fn read(structured: &Value, text: &str) -> Result<ChannelOutcome, String> {
        let delivery = NotificationReply::parse(structured);
        let delivery = delivery
            .map_err(|_| "its answer is none of a channel: it has no status that is known".to_owned())?;
        let reason = delivery.reason.clone().unwrap_or_else(|| "it gives no reason".to_owned());
        Ok(match delivery.status {
            DeliveryStatus::Retry => ChannelOutcome::Retry { reason, after: delivery.retry_after() },
            DeliveryStatus::Refused => ChannelOutcome::Refused(reason),
            DeliveryStatus::Delivered => {
                let all = u64::try_from(text.len()).unwrap_or(u64::MAX);
                let sent = structured.get("sent_bytes").map_or(Some(all), Value::as_u64);
                let sent = sent.and_then(|sent| usize::try_from(sent).ok());
                let whole =
                    sent.filter(|sent| text.is_char_boundary(*sent) && (*sent > 0 || text.is_empty()));
                ChannelOutcome::Sent(whole.ok_or_else(|| {
                    "its answer says that a part was sent which is none of the text: sent_bytes".to_owned()
                })?)
            }
        })
    }
}

pub(super) fn sample() -> ChannelRequest {
    ChannelRequest {
        op: ChannelOp::Send,
        id: "01J00000000000000000000000".to_owned(),
        conversation: "42".to_owned(),
        text: "The deployment is done.".to_owned(),
        buttons: vec![ChannelButton { id: "a:7".to_owned(), label: "Allow".to_owned() }],
        attempt: 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    // Promises: GW-203
    #[test]
    fn an_answer_says_how_much_was_sent_or_why_not() {
        let read = |value: Value| ChannelReply::read(&value, "tschüss");
        assert_eq!(read(json!({"status": "delivered"})), Ok(ChannelOutcome::Sent(8)));
        assert_eq!(read(json!({"status": "delivered", "sent_bytes": 4})), Ok(ChannelOutcome::Sent(4)));
        let later = json!({"status": "retry", "reason": "busy", "retry_after_seconds": 3});
        let after = Some(Duration::from_secs(3));
        assert_eq!(read(later), Ok(ChannelOutcome::Retry { reason: "busy".to_owned(), after }));
        assert!(matches!(read(json!({"status": "refused"})), Ok(ChannelOutcome::Refused(_))));
        for wrong in [
            json!({}),
            json!(null),
            json!({"status": "delivered", "sent_bytes": 0}),
            json!({"status": "delivered", "sent_bytes": 5}),
            json!({"status": "delivered", "sent_bytes": 9}),
            json!({"status": "delivered", "sent_bytes": "8"}),
        ] {
            assert!(read(wrong.clone()).expect_err("none").len() < 200, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_left_of_a_text_is_always_a_text(text in ".{0,40}", sent in 0_u64..200) {
            if let Ok(ChannelOutcome::Sent(sent)) = ChannelReply::read(&json!({"status": "delivered", "sent_bytes": sent}), &text) {
                prop_assert!(text.get(sent..).is_some());
            }
        }
    }
}
