//! What Slack tells, as events of a channel. Pure.

use serde::{Deserialize, Deserializer};
use talon_sdk::SourceEvent;
use talon_sdk::channel::{
    BUTTON_TOPIC, ChannelFile, MAX_TEXT_BYTES, MESSAGE_TOPIC, UNSUPPORTED_TOPIC, with_files,
};
use talon_sink::edit_notices::EDITS;

use crate::conversation::{Conversation, is_direct};
use crate::frame::Envelope;
use crate::plain_text::{OwnName, mentions, plain};

/// The app itself, as `auth.test` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct AppUser {
    /// Its user in the workspace.
    pub(crate) user_id: String,
    /// What people call it.
    #[serde(default)]
    pub(crate) user: String,
    /// The workspace.
    #[serde(default)]
    pub(crate) team_id: String,
}

/// Something that somebody did, for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inbound {
    /// The event's id.
    pub(crate) id: String,
    pub(crate) conversation: Conversation,
    /// Who did it.
    pub(crate) user: String,
    /// How Slack calls them, where it says so.
    pub(crate) name: Option<String>,
    pub(crate) content: Content,
}

/// What somebody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Wrote a message.
    Message { text: String, files: Vec<ChannelFile>, mentioned: bool },
    /// Pressed a button with this value.
    Button(String),
    /// Did something that is not passed on.
    Unsupported { what: &'static str, mentioned: bool },
}

/// What a text is called that is longer than an event takes.
const LONG_TEXTS: &str = "texts of more than 16 KiB";

#[derive(Deserialize)]
struct EventPayload {
    event: Message,
}

/// A message, as Slack tells it (<https://docs.slack.dev/reference/events/message>). What is not named here is not looked at; `null` counts as
/// left out, here and below.
#[derive(Debug, Deserialize)]
struct Message {
    #[serde(default, deserialize_with = "or_default")]
    r#type: String,
    #[serde(default, deserialize_with = "or_default")]
    subtype: String,
    #[serde(default, deserialize_with = "or_default")]
    channel: String,
    #[serde(default, deserialize_with = "or_default")]
    user: String,
    #[serde(default)]
    bot_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    text: String,
    #[serde(default, deserialize_with = "or_default")]
    ts: String,
    #[serde(default)]
    thread_ts: Option<String>,
    /// Who wrote what the thread answers.
    #[serde(default)]
    parent_user_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    files: Vec<SentFile>,
    /// Of `message_changed`: the message as it is now, and as it was.
    message: Option<Box<Message>>,
    previous_message: Option<Box<Message>>,
}

/// A file of a message (<https://docs.slack.dev/reference/objects/file-object>).
#[derive(Debug, Deserialize)]
struct SentFile {
    #[serde(default, deserialize_with = "or_default")]
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    size: Option<u64>,
    /// `tombstone` for one that was deleted, `hidden_by_limit` for one that is not shown any more.
    #[serde(default, deserialize_with = "or_default")]
    mode: String,
}

/// What was done with a message's buttons (<https://docs.slack.dev/reference/interaction-payloads/block_actions-payload>).
#[derive(Deserialize)]
struct Interaction {
    #[serde(default, deserialize_with = "or_default")]
    r#type: String,
    #[serde(default, deserialize_with = "or_default")]
    user: InteractionUser,
    channel: Option<InteractionPlace>,
    message: Option<Message>,
    #[serde(default, deserialize_with = "or_default")]
    actions: Vec<Action>,
}

#[derive(Default, Deserialize)]
struct InteractionUser {
    #[serde(default, deserialize_with = "or_default")]
    id: String,
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    username: String,
}

#[derive(Deserialize)]
struct InteractionPlace {
    #[serde(default, deserialize_with = "or_default")]
    id: String,
}

#[derive(Deserialize)]
struct Action {
    #[serde(default, deserialize_with = "or_default")]
    r#type: String,
    #[serde(default, deserialize_with = "or_default")]
    value: String,
    #[serde(default, deserialize_with = "or_default")]
    action_ts: String,
}

/// What an envelope says to the agent; `None` for what is nothing for it: other events, the app's own messages and other bots'.
///
/// # Errors
/// What is not understood of it: it is of a later version.
pub(crate) fn inbound(
    envelope: &Envelope,
    own: &AppUser,
    thread_replies: bool,
) -> Result<Option<Inbound>, serde_json::Error> {
    Ok(match envelope.kind.as_str() {
        "events_api" => event(&EventPayload::deserialize(&envelope.payload)?.event, own, thread_replies),
        "interactive" => press(Interaction::deserialize(&envelope.payload)?, own),
        _ => None,
    })
}

/// The value, or none where there is `null`.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

fn event(event: &Message, own: &AppUser, thread_replies: bool) -> Option<Inbound> {
    // Who mentions the app is told twice to an app that asks for `app_mention`, and there without files: the message has all of it.
    if event.r#type != "message" {
        return None;
    }
    let (said, content) = match event.subtype.as_str() {
        "" | "file_share" | "thread_broadcast" | "me_message" => (event, content(event, own)?),
        "message_changed" => {
            let said = event.message.as_deref()?;
            // Slack says so for a preview of a link, too, which is no change of the text.
            let before = event.previous_message.as_deref().map(|before| before.text.as_str());
            if before == Some(said.text.as_str()) || said.text.trim().is_empty() {
                return None;
            }
            (said, Content::Unsupported { what: EDITS, mentioned: is_for(said, own) })
        }
        // Who came and went, what a channel is called, bots.
        _ => return None,
    };
    let is_person = !said.user.is_empty() && said.user != own.user_id && said.bot_id.is_none();
    if !is_person || event.channel.is_empty() || said.ts.is_empty() {
        return None;
    }
    let thread = real_thread(said).or_else(|| {
        // What was said at the channel's level gets a thread of its own.
        (thread_replies && !is_direct(&event.channel)).then(|| said.ts.clone())
    });
    // The id is the message's place: the message is the same one however often, and in whatever events, Slack tells it.
    let edit =
        if matches!(content, Content::Unsupported { what: EDITS, .. }) { event.ts.as_str() } else { "" };
    Some(Inbound {
        id: event_id(&[&own.team_id, &event.channel, &said.ts, edit]),
        conversation: Conversation { channel: event.channel.clone(), thread },
        user: said.user.clone(),
        name: None,
        content,
    })
}

/// The thread in which a message stands. The first message of a thread says that it stands in its own, which is no thread for its answer.
fn real_thread(message: &Message) -> Option<String> {
    message.thread_ts.clone().filter(|thread| *thread != message.ts)
}

fn content(message: &Message, own: &AppUser) -> Option<Content> {
    let text = plain(&message.text, &OwnName { id: &own.user_id, name: &own.user });
    let files = files(&message.files);
    let mentioned = is_for(message, own);
    if text.len() > MAX_TEXT_BYTES {
        return Some(Content::Unsupported { what: LONG_TEXTS, mentioned });
    }
    (!text.trim().is_empty() || !files.is_empty()).then_some(Content::Message { text, files, mentioned })
}

/// Whether Slack marks the message as for the app: it mentions it, or stands in a thread below one of its messages.
fn is_for(message: &Message, own: &AppUser) -> bool {
    mentions(&message.text, &own.user_id) || message.parent_user_id.as_deref() == Some(own.user_id.as_str())
}

fn files(files: &[SentFile]) -> Vec<ChannelFile> {
    files
        .iter()
        .filter(|file| !matches!(file.mode.as_str(), "tombstone" | "hidden_by_limit"))
        .filter_map(|file| ChannelFile::new(&file.id, file.name.as_deref().unwrap_or("file"), file.size))
        .collect()
}

fn press(interaction: Interaction, own: &AppUser) -> Option<Inbound> {
    if interaction.r#type != "block_actions" {
        return None;
    }
    let (channel, message) = (interaction.channel?.id, interaction.message?);
    let action = interaction.actions.into_iter().find(|action| action.r#type == "button")?;
    let user = interaction.user;
    if user.id.is_empty() || channel.is_empty() {
        return None;
    }
    let name = if user.name.is_empty() { user.username } else { user.name };
    Some(Inbound {
        id: event_id(&[&own.team_id, &channel, &message.ts, &user.id, &action.action_ts]),
        conversation: Conversation { channel, thread: real_thread(&message) },
        user: user.id,
        name: Some(name).filter(|name| !name.is_empty()),
        content: Content::Button(action.value),
    })
}

/// An id of these parts, of the letters that ids of events have.
fn event_id(parts: &[&str]) -> String {
    /// The longest id of an event.
    const MAX_BYTES: usize = 128;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let parts = parts.iter().map(|part| part.chars().filter(|c| plain(*c)).collect::<String>());
    let mut id = format!("s/{}", parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"));
    id.truncate(MAX_BYTES);
    id
}

impl Inbound {
    /// The event, by somebody with this name.
    pub(crate) fn event(&self, name: &str) -> SourceEvent {
        let told = |topic: &str, what: &str| {
            let event = SourceEvent::new(&self.id, topic, format!("{what} {name}"))
                .field("conversation", self.conversation.to_string())
                .field("sender_id", &self.user)
                .field("sender_name", name);
            let channel = &self.conversation.channel;
            if is_direct(channel) { event } else { event.field("group_id", channel) }
        };
        let marked = |event: SourceEvent, mentioned: bool| event.field("mentioned", mentioned.to_string());
        match &self.content {
            Content::Message { text, files, mentioned } => {
                marked(with_files(told(MESSAGE_TOPIC, "A message of"), files), *mentioned).details(text)
            }
            Content::Button(value) => told(BUTTON_TOPIC, "A button was pressed by").field("button", value),
            Content::Unsupported { what, mentioned } => {
                marked(told(UNSUPPORTED_TOPIC, "Something that is not passed on, of"), *mentioned)
                    .details(*what)
            }
        }
    }
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;
