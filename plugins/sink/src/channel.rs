//! What the action of a channel is asked, and what it answers (docs/extensions/channel.md).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_sdk::{Output, ToolError};

use crate::delivery::Delivery;

/// The topic of the event of a message.
pub const MESSAGE_TOPIC: &str = "channel.message";
/// The topic of the event of a button that somebody pressed.
pub const BUTTON_TOPIC: &str = "channel.button";
/// The topic of the event by which a plugin that has started asks to be opened.
pub const CLOSED_TOPIC: &str = "channel.closed";
/// The longest text that an event takes.
pub const MAX_TEXT_BYTES: usize = 16 << 10;

/// The arguments of the action of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ChannelRequest {
    /// What to do.
    pub op: ChannelOp,
    /// Of `send`: what identifies the message, the same in every attempt.
    #[serde(default)]
    pub id: String,
    /// Of `send`: where to, as an event of the plugin's said.
    #[serde(default)]
    pub conversation: String,
    /// Of `send`: the text, or what of it was not sent yet.
    #[serde(default)]
    pub text: String,
    /// Of `send`: buttons below the text.
    #[serde(default)]
    pub buttons: Vec<ChannelButton>,
    /// Of `send`: the number of the attempt, from 1.
    #[serde(default)]
    pub attempt: u32,
}

/// What a channel is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelOp {
    /// Be ready to listen.
    Open,
    /// Send a text.
    Send,
}

/// A button below a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ChannelButton {
    /// What the event of it says.
    pub id: String,
    /// What stands on it.
    pub label: String,
}

/// The answer of the action, where only the beginning of the text was sent: so many bytes.
///
/// # Errors
/// None today; as [`Output::structured`] says.
pub fn sent_part(bytes: usize) -> Result<Output, ToolError> {
    #[derive(Serialize)]
    struct Part {
        status: &'static str,
        sent_bytes: usize,
    }
    Output::text(format!("delivered: {bytes} bytes"))
        .structured(Part { status: "delivered", sent_bytes: bytes })
}

/// The answer of the action for a text of which so many bytes were sent.
///
/// # Errors
/// As [`sent_part`].
pub fn output(delivery: &Delivery, text: &str, sent: usize) -> Result<Output, ToolError> {
    if matches!(delivery, Delivery::Delivered(_)) && sent < text.len() {
        sent_part(sent)
    } else {
        delivery.output()
    }
}
