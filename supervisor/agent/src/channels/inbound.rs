//! What an event of a channel's plugin says.

use talon_extensions::contract::{
    BUTTON_TOPIC, CLOSED_TOPIC, ChannelFile, FILE_FIELD, MAX_FILES, MESSAGE_TOPIC, UNSUPPORTED_TOPIC,
};
use talon_proto::host::HostEvent;
use talon_sanitize::Raw;

/// The longest address of a conversation: what a field of an event has.
const MAX_CONVERSATION_BYTES: usize = 512;
/// The longest name of a sender that models see. 64: a person's name.
const MAX_NAME_CHARS: usize = 64;
/// How much of what is not passed on is said.
const MAX_UNSUPPORTED_BYTES: usize = 200;

/// Who said something, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MessageSource {
    /// Where an answer goes, as the plugin understands it.
    pub(super) conversation: String,
    pub(super) sender_id: String,
    /// One line.
    pub(super) sender_name: String,
    /// `None` in a direct conversation.
    pub(super) group_id: Option<String>,
}

/// What somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InboundMessage {
    /// The event's id.
    pub(super) id: String,
    pub(super) speaker: MessageSource,
    pub(super) text: String,
    /// What came with it.
    pub(super) files: Vec<ChannelFile>,
    /// Whether the channel marks it as for the agent.
    pub(super) mentioned: bool,
}

/// An event of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InboundEvent {
    Message(InboundMessage),
    /// A button was pressed: its id.
    Button {
        speaker: MessageSource,
        button: String,
    },
    /// The plugin has started.
    Closed,
    /// Something came that the channel does not pass on.
    Unsupported {
        speaker: MessageSource,
        /// Whether the channel marks it as for the agent.
        mentioned: bool,
        /// What it was, in one line.
        what: String,
    },
}

/// Reads an event; `None` if it is none of a channel.
///
/// # Errors
/// What is wrong with one that is.
pub(super) fn inbound(event: &HostEvent) -> Option<Result<InboundEvent, &'static str>> {
    match field(event, "topic") {
        MESSAGE_TOPIC => Some(message(event)),
        BUTTON_TOPIC => Some(button(event)),
        CLOSED_TOPIC => Some(Ok(InboundEvent::Closed)),
        UNSUPPORTED_TOPIC => Some(unsupported(event)),
        _ => None,
    }
}

/// Whether it is a message, which may have to wait for room. A channel's other events never do.
pub(super) fn is_message(event: &HostEvent) -> bool {
    field(event, "topic") == MESSAGE_TOPIC
}

/// The configured name of the plugin that told an event.
pub(super) fn plugin(event: &HostEvent) -> &str {
    field(event, "plugin")
}

fn message(event: &HostEvent) -> Result<InboundEvent, &'static str> {
    let files = files(event)?;
    if event.details.trim().is_empty() && files.is_empty() {
        return Err("its details, the text, are empty");
    }
    let id = field(event, "event_id");
    if id.is_empty() {
        return Err("it has no id");
    }
    Ok(InboundEvent::Message(InboundMessage {
        id: id.to_owned(),
        speaker: speaker(event)?,
        text: event.details.clone(),
        files,
        mentioned: field(event, "mentioned") == "true",
    }))
}

fn button(event: &HostEvent) -> Result<InboundEvent, &'static str> {
    Ok(InboundEvent::Button { speaker: speaker(event)?, button: field(event, "button").to_owned() })
}

fn unsupported(event: &HostEvent) -> Result<InboundEvent, &'static str> {
    let what = Raw::from(event.details.as_str()).line_within(MAX_UNSUPPORTED_BYTES);
    if what.as_str().trim().is_empty() {
        return Err("its details, what it was, are empty");
    }
    Ok(InboundEvent::Unsupported {
        speaker: speaker(event)?,
        mentioned: field(event, "mentioned") == "true",
        what: what.into_string(),
    })
}

fn files(event: &HostEvent) -> Result<Vec<ChannelFile>, &'static str> {
    let mut files = Vec::new();
    for number in 1..=MAX_FILES {
        let Some(json) = event.fields.get(&format!("{FILE_FIELD}{number}")) else { break };
        let file: ChannelFile =
            serde_json::from_str(json).map_err(|_| "a field of a file is no JSON of one")?;
        if file.id.is_empty() {
            return Err("a file has no id");
        }
        files.push(file);
    }
    Ok(files)
}

fn speaker(event: &HostEvent) -> Result<MessageSource, &'static str> {
    let (conversation, sender_id) = (field(event, "conversation"), field(event, "sender_id"));
    if conversation.is_empty() || conversation.len() > MAX_CONVERSATION_BYTES {
        return Err("its field conversation is empty or too long");
    }
    if sender_id.is_empty() {
        return Err("its field sender_id is empty");
    }
    let name = Raw::from(field(event, "sender_name")).line();
    let name: String = name.as_str().trim().chars().take(MAX_NAME_CHARS).collect();
    Ok(MessageSource {
        conversation: conversation.to_owned(),
        sender_id: sender_id.to_owned(),
        // A model has to know that somebody speaks, and whom.
        sender_name: if name.is_empty() { sender_id.to_owned() } else { name },
        group_id: Some(field(event, "group_id").to_owned()).filter(|group| !group.is_empty()),
    })
}

fn field<'e>(event: &'e HostEvent, name: &str) -> &'e str {
    event.fields.get(name).map_or("", String::as_str)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An event with these fields.
    pub(in crate::channels) fn event(topic: &str, text: &str, fields: &[(&str, &str)]) -> HostEvent {
        let own = [("plugin", "telegram"), ("topic", topic), ("event_id", "u/7")];
        HostEvent {
            kind: "source.event".to_owned(),
            details: text.to_owned(),
            fields: own
                .iter()
                .chain(fields)
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..HostEvent::default()
        }
    }

    #[test]
    fn an_event_is_a_message_a_button_or_nothing_of_a_channel() {
        let who = [("conversation", "42"), ("sender_id", "42"), ("sender_name", "Ada\nLovelace")];
        let Some(Ok(InboundEvent::Message(said))) = inbound(&event(MESSAGE_TOPIC, "hello", &who)) else {
            panic!("a message")
        };
        assert_eq!((said.id.as_str(), said.text.as_str(), said.mentioned), ("u/7", "hello", false));
        assert!(!said.speaker.sender_name.contains('\n') && said.speaker.group_id.is_none());
        let pressed = [("conversation", "42"), ("sender_id", "42"), ("button", "a:7"), ("group_id", "-7")];
        let Some(Ok(InboundEvent::Button { speaker, button })) = inbound(&event(BUTTON_TOPIC, "", &pressed))
        else {
            panic!("a button")
        };
        assert_eq!(
            (speaker.sender_name.as_str(), speaker.group_id.as_deref(), &*button),
            ("42", Some("-7"), "a:7")
        );
        assert_eq!(inbound(&event(CLOSED_TOPIC, "", &[])), Some(Ok(InboundEvent::Closed)));
        assert_eq!(inbound(&event("mail.arrived", "hello", &who)), None);
        let file =
            [who[0], who[1], ("file_1", r#"{"id": "f7", "name": "a.pdf", "bytes": 9}"#), ("file_3", "-")];
        let Some(Ok(InboundEvent::Message(said))) = inbound(&event(MESSAGE_TOPIC, "", &file)) else {
            panic!("a message")
        };
        let pdf = ChannelFile { id: "f7".to_owned(), name: "a.pdf".to_owned(), bytes: Some(9) };
        assert_eq!((said.text.as_str(), said.files), ("", vec![pdf]));
        let broken = [who[0], who[1], ("file_1", "f7")];
        assert!(matches!(inbound(&event(MESSAGE_TOPIC, "hello", &broken)), Some(Err(_))));
        let edit = inbound(&event(UNSUPPORTED_TOPIC, "edits of\nmessages", &who));
        let Some(Ok(InboundEvent::Unsupported { what, mentioned, .. })) = edit else { panic!("{edit:?}") };
        assert!(!what.contains('\n') && what.contains("edits of") && !mentioned, "{what}");
        for (text, fields) in [(" ", &who[..]), ("hello", &who[1..]), ("hello", &who[..1])] {
            assert!(
                matches!(inbound(&event(MESSAGE_TOPIC, text, fields)), Some(Err(_))),
                "{text} {fields:?}"
            );
        }
    }
}
