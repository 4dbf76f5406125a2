//! What Telegram tells (<https://core.telegram.org/bots/api#update>), as events of a channel.

use serde::Deserialize;
use serde_json::Value;
use talon_sdk::SourceEvent;
use talon_sdk::channel::{BUTTON_TOPIC, ChannelFile, MESSAGE_TOPIC, UNSUPPORTED_TOPIC, with_files};
use talon_sink::edit_notices::EDITS;

/// What is asked for: nothing else is told.
pub(crate) const ALLOWED_UPDATES: [&str; 3] = ["message", "edited_message", "callback_query"];

/// The bot itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Bot {
    pub(crate) id: i64,
    #[serde(default)]
    pub(crate) username: String,
}

/// One update. What is not named here is not looked at.
#[derive(Debug, Deserialize)]
pub(crate) struct Update {
    pub(crate) update_id: i64,
    message: Option<Message>,
    edited_message: Option<Message>,
    callback_query: Option<CallbackQuery>,
}

#[derive(Debug, Deserialize)]
struct Message {
    #[serde(default)]
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    from: Option<User>,
    chat: Chat,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    caption: Option<String>,
    #[serde(default)]
    entities: Vec<Entity>,
    #[serde(default)]
    caption_entities: Vec<Entity>,
    reply_to_message: Option<Box<Message>>,
    /// The same photo in several sizes.
    #[serde(default)]
    photo: Vec<SentFile>,
    document: Option<SentFile>,
    audio: Option<SentFile>,
    video: Option<SentFile>,
    voice: Option<SentFile>,
    video_note: Option<SentFile>,
    sticker: Option<Value>,
    contact: Option<Value>,
    location: Option<Value>,
    poll: Option<Value>,
    dice: Option<Value>,
}

/// A file of a message, or one size of a photo.
#[derive(Debug, Deserialize)]
struct SentFile {
    file_id: String,
    #[serde(default)]
    file_name: Option<String>,
    #[serde(default)]
    file_size: Option<u64>,
    #[serde(default)]
    width: u64,
}

#[derive(Debug, Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
}

#[derive(Debug, Deserialize)]
struct Chat {
    id: i64,
    r#type: String,
}

#[derive(Debug, Deserialize)]
struct Entity {
    r#type: String,
    /// In UTF-16 units.
    offset: usize,
    length: usize,
    user: Option<User>,
}

#[derive(Debug, Deserialize)]
struct CallbackQuery {
    id: String,
    from: User,
    message: Option<Message>,
    #[serde(default)]
    data: Option<String>,
}

/// The event of an update, and the button's query that has to be answered; `None` for what is nothing for the agent: service messages,
/// other bots, channels' posts.
pub(crate) fn event(update: &Update, bot: &Bot) -> (Option<SourceEvent>, Option<String>) {
    let id = format!("b{}/u{}", bot.id, update.update_id);
    if let Some(query) = &update.callback_query {
        let told = query.message.as_ref().zip(query.data.as_ref()).map(|(message, data)| {
            let event = SourceEvent::new(id, BUTTON_TOPIC, format!("{} pressed a button", name(&query.from)));
            about(event, message, &query.from).field("button", data)
        });
        return (told, Some(query.id.clone()));
    }
    // A live location is edited every few seconds, and by nobody.
    let edited = update.edited_message.as_ref().filter(|message| !text(message).trim().is_empty());
    let edited = edited.map(|message| (message, Some(EDITS)));
    let said = update.message.as_ref().map(|message| (message, unsupported(message)));
    let told = said.or(edited).and_then(|(message, unsupported)| {
        let from = message.from.as_ref().filter(|from| !from.is_bot)?;
        let mentioned = if is_for(message, bot) { "true" } else { "false" };
        let told = |topic: &str, what: &str| {
            let event = SourceEvent::new(id, topic, format!("{what} of {}", name(from)));
            about(event, message, from).field("mentioned", mentioned)
        };
        if let Some(what) = unsupported {
            return Some(told(UNSUPPORTED_TOPIC, "Something that is not passed on,").details(what));
        }
        let (text, files) = (text(message), files(message));
        if text.trim().is_empty() && files.is_empty() {
            return None;
        }
        Some(with_files(told(MESSAGE_TOPIC, "A message"), &files).details(text))
    });
    (told, None)
}

/// What a message is that has neither a text nor a file; `None` for another one, and for what Telegram says of a chat.
fn unsupported(message: &Message) -> Option<&'static str> {
    let kinds = [
        (&message.sticker, "stickers"),
        (&message.contact, "contacts"),
        (&message.location, "locations"),
        (&message.poll, "polls"),
        (&message.dice, "dice"),
    ];
    kinds.into_iter().find(|(there, _)| there.is_some()).map(|(_, what)| what)
}

/// The files of a message. Telegram sends those of an album as messages of their own.
fn files(message: &Message) -> Vec<ChannelFile> {
    let largest = message.photo.iter().max_by_key(|size| size.width);
    let named = [
        (largest, "photo.jpg"),
        (message.document.as_ref(), "document"),
        (message.audio.as_ref(), "audio"),
        (message.video.as_ref(), "video.mp4"),
        (message.voice.as_ref(), "voice.ogg"),
        (message.video_note.as_ref(), "video.mp4"),
    ];
    let file = |(sent, usual): (Option<&SentFile>, &str)| {
        let sent = sent?;
        ChannelFile::new(&sent.file_id, sent.file_name.as_deref().unwrap_or(usual), sent.file_size)
    };
    named.into_iter().filter_map(file).collect()
}

/// The event with who says it, and where.
fn about(event: SourceEvent, message: &Message, from: &User) -> SourceEvent {
    let chat = message.chat.id;
    let conversation = match message.message_thread_id.filter(|_| message.is_topic_message) {
        Some(topic) => format!("{chat}/{topic}"),
        None => chat.to_string(),
    };
    let event = event
        .field("conversation", conversation)
        .field("sender_id", from.id.to_string())
        .field("sender_name", name(from));
    if message.chat.r#type == "private" { event } else { event.field("group_id", chat.to_string()) }
}

fn name(user: &User) -> String {
    format!("{} {}", user.first_name, user.last_name).trim().to_owned()
}

fn text(message: &Message) -> &str {
    message.text.as_ref().or(message.caption.as_ref()).unwrap_or(&NOTHING)
}

/// Whether Telegram marks the message as for the bot: it mentions the bot, is one of its commands, or answers it.
fn is_for(message: &Message, bot: &Bot) -> bool {
    let answered = message.reply_to_message.as_ref().and_then(|answered| answered.from.as_ref());
    if answered.is_some_and(|from| from.id == bot.id) {
        return true;
    }
    let (text, entities) = match &message.text {
        Some(text) => (text, &message.entities),
        None => (message.caption.as_ref().unwrap_or(&NOTHING), &message.caption_entities),
    };
    let units: Vec<u16> = text.encode_utf16().collect();
    let own = format!("@{}", bot.username).to_lowercase();
    entities.iter().any(|entity| {
        let end = entity.offset.saturating_add(entity.length);
        let shown =
            units.get(entity.offset..end).map(String::from_utf16_lossy).unwrap_or_default().to_lowercase();
        match entity.r#type.as_str() {
            "mention" => !bot.username.is_empty() && shown == own,
            "text_mention" => entity.user.as_ref().is_some_and(|user| user.id == bot.id),
            // In a group with several bots a command names one.
            "bot_command" => !shown.contains('@') || shown.ends_with(&own),
            _ => false,
        }
    })
}

/// No text.
static NOTHING: String = String::new();

#[cfg(test)]
mod tests {
    use serde_json::json;
    use talon_sink::edit_notices::edited_conversation;

    use super::*;

    fn bot() -> Bot {
        Bot { id: 99, username: "TalonBot".to_owned() }
    }

    fn told(update: Value) -> Option<SourceEvent> {
        event(&serde_json::from_value(update).expect("an update"), &bot()).0
    }

    fn group(more: Value) -> Value {
        let mut message = json!({
            "message_id": 5, "date": 1_780_000_000, "chat": {"id": -1001, "type": "supergroup", "title": "Ops"},
            "from": {"id": 42, "is_bot": false, "first_name": "Ada"},
        });
        message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"update_id": 7, "message": message})
    }

    // Promises: GW-209
    #[test]
    fn a_message_says_who_where_and_whether_it_is_for_the_bot() {
        let direct = told(json!({"update_id": 7, "message": {
            "message_id": 5, "date": 1_780_000_000, "text": "hello", "chat": {"id": 42, "type": "private", "first_name": "Ada"},
            "from": {"id": 42, "is_bot": false, "first_name": "Ada", "last_name": "Lovelace", "language_code": "en"},
        }}))
        .expect("an event");
        assert_eq!((direct.id(), direct.topic()), ("b99/u7", "channel.message"));
        assert_eq!(
            (direct.value("conversation"), direct.value("sender_name")),
            (Some("42"), Some("Ada Lovelace"))
        );
        assert_eq!(direct.value("group_id"), None);
        let mention = |text: &str, entities: Value| {
            told(group(json!({"text": text, "entities": entities}))).expect("an event")
        };
        let said = mention("😀 @talonbot hi", json!([{"type": "mention", "offset": 3, "length": 9}]));
        assert_eq!((said.value("mentioned"), said.value("group_id")), (Some("true"), Some("-1001")));
        for (text, entities, is_for) in [
            ("@other hi", json!([{"type": "mention", "offset": 0, "length": 6}]), "false"),
            ("/ask now", json!([{"type": "bot_command", "offset": 0, "length": 4}]), "true"),
            ("/ask@TalonBot now", json!([{"type": "bot_command", "offset": 0, "length": 13}]), "true"),
            ("/ask@otherbot", json!([{"type": "bot_command", "offset": 0, "length": 13}]), "false"),
            (
                "Talon hi",
                json!([{"type": "text_mention", "offset": 0, "length": 5, "user": {"id": 99, "is_bot": true, "first_name": "T"}}]),
                "true",
            ),
            ("hi", json!([{"type": "mention", "offset": 90, "length": 9}]), "false"),
            ("hi", json!([]), "false"),
        ] {
            assert_eq!(mention(text, entities).value("mentioned"), Some(is_for), "{text}");
        }
        let answer = json!({"text": "yes", "reply_to_message": {
            "message_id": 4, "chat": {"id": -1001, "type": "supergroup"}, "from": {"id": 99, "is_bot": true, "first_name": "T"},
        }});
        assert_eq!(told(group(answer)).expect("an event").value("mentioned"), Some("true"));
        let topic = told(group(json!({"text": "x", "message_thread_id": 3, "is_topic_message": true})))
            .expect("an event");
        assert_eq!(topic.value("conversation"), Some("-1001/3"));
        // In other groups a thread is only an answer's.
        let thread = told(group(json!({"text": "x", "message_thread_id": 3}))).expect("an event");
        assert_eq!(thread.value("conversation"), Some("-1001"));
    }

    #[test]
    fn what_is_nothing_for_the_agent_is_no_event_and_a_file_is_said() {
        let live = json!({"message_id": 5, "chat": {"id": 42, "type": "private"}, "location": {"latitude": 1.0},
            "from": {"id": 42, "is_bot": false, "first_name": "Ada"}});
        for none in [
            json!({"update_id": 7}),
            json!({"update_id": 7, "edited_message": live}),
            group(json!({"new_chat_title": "Other"})),
            group(json!({"text": "hi", "from": {"id": 1, "is_bot": true, "first_name": "B"}})),
            group(json!({"text": " "})),
        ] {
            assert_eq!(told(none.clone()), None, "{none}");
        }
        for (more, what) in [
            (json!({"sticker": {"file_id": "x", "emoji": "👍"}}), "stickers"),
            (json!({"location": {"latitude": 1.0, "longitude": 2.0}}), "locations"),
        ] {
            let event = told(group(more)).expect("an event");
            assert_eq!((event.topic(), event.details_text()), ("channel.unsupported", what));
        }
        let mut edited = group(json!({"text": "hello, I mean"}));
        edited["edited_message"] = edited["message"].take();
        edited.as_object_mut().expect("an object").remove("message");
        let edited = told(edited).expect("an event");
        assert_eq!((edited.topic(), edited.details_text()), ("channel.unsupported", "edits of messages"));
        assert_eq!(edited_conversation(&edited).as_deref(), Some("-1001 false"));
        let message = told(group(json!({"text": EDITS}))).expect("an event");
        assert_eq!(edited_conversation(&message), None);
    }

    // Promises: GW-231
    #[test]
    fn a_photo_is_its_largest_size_and_a_document_has_its_name() {
        let photo = told(group(json!({"caption": "look", "photo": [
            {"file_id": "s", "width": 90, "height": 60, "file_size": 1000},
            {"file_id": "l", "width": 1280, "height": 800, "file_size": 90_000},
        ]})));
        let photo = photo.expect("an event");
        assert_eq!((photo.topic(), photo.details_text()), ("channel.message", "look"));
        assert_eq!(photo.value("file_1"), Some(r#"{"id":"l","name":"photo.jpg","bytes":90000}"#));
        let document = told(group(json!({"document": {"file_id": "d", "file_name": "plan.pdf"}})));
        let document = document.expect("an event");
        assert_eq!(document.details_text(), "");
        assert_eq!(document.value("file_1"), Some(r#"{"id":"d","name":"plan.pdf"}"#));
    }

    #[test]
    fn a_button_counts_as_its_sender_and_is_answered() {
        let update = json!({"update_id": 8, "callback_query": {
            "id": "4382", "from": {"id": 42, "is_bot": false, "first_name": "Ada"}, "data": "a:01J:ab", "chat_instance": "1",
            "message": {"message_id": 5, "date": 1, "chat": {"id": -1001, "type": "supergroup"}, "from": {"id": 99, "is_bot": true, "first_name": "T"}},
        }});
        let (told, query) = event(&serde_json::from_value(update).expect("an update"), &bot());
        let told = told.expect("an event");
        assert_eq!(
            (told.topic(), told.value("button"), told.value("sender_id")),
            ("channel.button", Some("a:01J:ab"), Some("42"))
        );
        assert_eq!(query.as_deref(), Some("4382"));
        let old = json!({"update_id": 9, "callback_query": {"id": "1", "from": {"id": 42, "is_bot": false, "first_name": "Ada"}}});
        let (told, query) = event(&serde_json::from_value(old).expect("an update"), &bot());
        assert!(told.is_none() && query.is_some());
    }
}
