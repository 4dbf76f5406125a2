//! A message that is not answered yet.

use serde::{Deserialize, Serialize};
use talon_extensions::contract::ChannelFile;

use super::inbound::InboundMessage;
use super::routing::Route;

/// A message that is not answered yet, as its row has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingMessage {
    /// The row's key, in the order of arrival.
    pub(super) id: String,
    pub(super) channel: String,
    /// The id of its event.
    pub(super) event: String,
    pub(super) conversation: String,
    pub(super) owner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) member: Option<String>,
    /// Empty in a direct conversation, where nobody has to be told apart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) sender_name: String,
    pub(super) text: String,
    /// What came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<ChannelFile>,
    /// Whether its turn was begun: one whose session is gone is not begun again.
    #[serde(default)]
    pub(super) asked: bool,
    /// How many bytes of the answer were sent.
    #[serde(default)]
    pub(super) sent: usize,
    /// The approvals that were shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) shown: Vec<String>,
}

impl PendingMessage {
    pub(super) fn new(id: String, channel: &str, message: InboundMessage, route: Route) -> Self {
        let InboundMessage { id: event, speaker, text, files, mentioned: _ } = message;
        Self {
            id,
            channel: channel.to_owned(),
            event,
            conversation: speaker.conversation,
            sender_name: if route.member.is_some() { speaker.sender_name } else { String::new() },
            owner: route.owner,
            member: route.member,
            text,
            files,
            asked: false,
            sent: 0,
            shown: Vec::new(),
        }
    }

    /// The name of its turn in the session: the same message is one turn.
    pub(super) fn client_id(&self) -> String {
        format!("{}:{}", self.channel, self.event)
    }
}
