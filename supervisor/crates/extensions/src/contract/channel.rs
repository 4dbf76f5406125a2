//! What the action of a channel is asked, what it answers, and what its plugin tells as events.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::notification::{DeliveryStatus, NotificationReply};
use super::storage_bytes::StorageBytes;

/// The topic of the event of a message.
pub const MESSAGE_TOPIC: &str = "channel.message";
/// The topic of the event of a button that somebody pressed.
pub const BUTTON_TOPIC: &str = "channel.button";
/// The topic of the event by which a plugin that has started asks to be opened.
pub const CLOSED_TOPIC: &str = "channel.closed";
/// The topic of the event of something that the channel does not pass on, such as an edit of a message.
pub const UNSUPPORTED_TOPIC: &str = "channel.unsupported";
/// What the fields of a message's files begin with; a number from 1 follows.
pub const FILE_FIELD: &str = "file_";
/// The most files of one message. 8: with them an event has not more fields than it may have.
pub const MAX_FILES: usize = 8;
/// The most bytes of a file in one answer. 512 KiB: as base64 well below the largest answer of a role.
pub const MAX_PIECE_BYTES: usize = 512 << 10;

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
    /// Of `fetch`: the id of a file, as a message of the plugin's had it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Of `fetch`: from which byte on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// Of `fetch`: the most bytes that the whole file may have. Refuse a larger one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ChannelRequest {
    /// A request without anything but what to do.
    #[must_use]
    pub fn of(op: ChannelOp) -> Self {
        Self {
            op,
            id: String::new(),
            conversation: String::new(),
            text: String::new(),
            buttons: Vec::new(),
            attempt: 0,
            file: String::new(),
            offset: 0,
            max_bytes: 0,
        }
    }
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
    /// Show in `conversation` that an answer is being written. It comes again every few seconds while one is. Only to a channel
    /// that supports `typing`.
    Typing,
    /// Give a piece of a file that came with a message.
    Fetch,
}

/// What a channel can beside sending texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelFeature {
    /// It shows that an answer is being written.
    Typing,
}

/// A file that came with a message, as a field of its event has it: JSON of at most 512 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelFile {
    /// With which it is fetched.
    pub id: String,
    /// What its sender calls it; may be empty. Its type is told by its bytes.
    #[serde(default)]
    pub name: String,
    /// Its size, if the channel knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePiece {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether others follow.
    pub more: bool,
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
    /// With `delivered`, of `open`: what the channel can beside sending texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supports: Vec<ChannelFeature>,
    /// With `delivered`, of `fetch`: at most 524,288 bytes of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<StorageBytes>,
    /// Beside `piece`: whether the file has bytes behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
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

impl ChannelReply {
    /// What a channel that was opened can beside sending texts. What this version does not know is left out.
    #[must_use]
    pub fn features(structured: &Value) -> Vec<ChannelFeature> {
        let named = structured.get("supports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        named.iter().filter_map(|name| serde_json::from_value(name.clone()).ok()).collect()
    }

    /// Reads the answer to `fetch`.
    ///
    /// # Errors
    /// Why there is no piece, and whether it may be asked for again.
    pub fn piece(structured: &Value) -> Result<FilePiece, ChannelOutcome> {
        match Self::read(structured, "") {
            Ok(ChannelOutcome::Sent(_)) => {}
            Ok(outcome) => return Err(outcome),
            Err(reason) => return Err(ChannelOutcome::Retry { reason, after: None }),
        }
        let piece = structured.get("piece").cloned().map(serde_json::from_value::<StorageBytes>);
        let bytes = match piece {
            Some(Ok(piece)) => piece.open(MAX_PIECE_BYTES).map_err(|error| error.to_string()),
            _ => Err("it is missing".to_owned()),
        };
        let more = structured.get("more").and_then(Value::as_bool).unwrap_or_default();
        match bytes {
            Ok(bytes) if bytes.is_empty() && more => {
                Err(ChannelOutcome::Refused("its answer has an empty piece, and more behind it".to_owned()))
            }
            Ok(bytes) => Ok(FilePiece { bytes, more }),
            Err(error) => Err(ChannelOutcome::Refused(format!("its answer has no piece of a file: {error}"))),
        }
    }
}

pub(super) fn sample() -> ChannelRequest {
    ChannelRequest {
        id: "01J00000000000000000000000".to_owned(),
        conversation: "42".to_owned(),
        text: "The deployment is done.".to_owned(),
        buttons: vec![ChannelButton { id: "a:7".to_owned(), label: "Allow".to_owned() }],
        attempt: 1,
        ..ChannelRequest::of(ChannelOp::Send)
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

    // Promises: GW-228
    #[test]
    fn a_piece_of_a_file_is_bytes_or_a_reason() {
        let piece = |bytes: &[u8], more: bool| {
            ChannelReply::piece(
                &json!({"status": "delivered", "piece": StorageBytes::seal(bytes), "more": more}),
            )
        };
        assert_eq!(piece(&[0, 255], true), Ok(FilePiece { bytes: vec![0, 255], more: true }));
        assert_eq!(piece(&[], false), Ok(FilePiece { bytes: Vec::new(), more: false }));
        assert!(matches!(piece(&[], true), Err(ChannelOutcome::Refused(_))));
        assert!(matches!(piece(&vec![0; MAX_PIECE_BYTES + 1], false), Err(ChannelOutcome::Refused(_))));
        let later = ChannelReply::piece(&json!({"status": "retry", "reason": "busy"}));
        assert!(matches!(later, Err(ChannelOutcome::Retry { .. })));
        let other = json!({"status": "delivered", "piece": {"data": "AP8", "sha256": "AP8"}});
        assert!(matches!(ChannelReply::piece(&other), Err(ChannelOutcome::Refused(_))));
        let opened = json!({"status": "delivered", "supports": ["telepathy", 7, "typing"]});
        assert_eq!(ChannelReply::features(&opened), [ChannelFeature::Typing]);
        assert!(ChannelReply::features(&json!("x")).is_empty());
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
