//! What is posted, as an event of a channel.

use serde::Deserialize;
use talon_sdk::SourceEvent;
use talon_sdk::channel::{
    BUTTON_TOPIC, ChannelFile, MAX_FILE_ID_BYTES, MAX_FILES, MAX_TEXT_BYTES, MESSAGE_TOPIC, with_files,
};

/// The longest id, name or address: what a field of an event has.
const MAX_FIELD_BYTES: usize = 512;
/// The longest id of a message: what an event's id has.
const MAX_ID_BYTES: usize = 120;

/// A message, or a button that was pressed. Fields as a `channel.message` of the gateway has them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Posted {
    /// What identifies it: the same one again is one message.
    id: String,
    sender_id: String,
    #[serde(default)]
    sender_name: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    is_group: bool,
    #[serde(default)]
    group_id: String,
    /// Whether it is for the agent, in a group.
    #[serde(default)]
    mentioned: bool,
    /// Where the answer goes; by default the group, or the sender.
    #[serde(default)]
    conversation: String,
    /// The id of the button that was pressed.
    #[serde(default)]
    button: String,
    /// What came with it.
    #[serde(default)]
    media: Option<Vec<PostedFile>>,
}

/// A file of a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PostedFile {
    /// Where it is: at the host to which answers go.
    url: String,
    /// What people call it.
    #[serde(default)]
    name: String,
    /// Its size, if that is known.
    #[serde(default)]
    bytes: Option<u64>,
}

impl PostedFile {
    /// The file; `None` if its URL is longer than an event takes.
    fn file(&self) -> Result<Option<ChannelFile>, String> {
        if self.url.len() > MAX_FILE_ID_BYTES {
            return Ok(None);
        }
        ChannelFile::new(&self.url, &self.name, self.bytes).map(Some).ok_or_else(|| {
            "media: url has 1 or more printable ASCII characters, no quotes and backslashes: percent-encode others"
                .to_owned()
        })
    }
}

/// The files, and what stands behind the text about those that are left out: a file's URL is no reason to lose the message.
fn files(media: &[PostedFile]) -> Result<(Vec<ChannelFile>, String), String> {
    let (mut files, mut note) = (Vec::new(), String::new());
    for (number, posted) in media.iter().enumerate() {
        match posted.file()? {
            Some(file) => files.push(file),
            None => note.push_str(&format!(
                "\n\n(A file was not passed on: file {}: its URL is longer than {MAX_FILE_ID_BYTES} bytes.)",
                number + 1
            )),
        }
    }
    Ok((files, note))
}

/// The event of what was posted.
///
/// # Errors
/// What is wrong, for its sender.
pub(crate) fn event(body: &[u8]) -> Result<SourceEvent, String> {
    let posted: Posted = serde_json::from_slice(body).map_err(|error| {
        format!("the body is none: {}", error.to_string().chars().take(200).collect::<String>())
    })?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if posted.id.is_empty() || posted.id.len() > MAX_ID_BYTES || !posted.id.chars().all(plain) {
        return Err(format!("id is 1 to {MAX_ID_BYTES} letters, digits and -_.:/"));
    }
    if posted.is_group == posted.group_id.is_empty() {
        return Err(
            "a message of a group has isGroup: true and its groupId, and another one neither".to_owned()
        );
    }
    let conversation = [&posted.conversation, &posted.group_id, &posted.sender_id];
    let conversation = conversation.into_iter().find(|part| !part.is_empty()).map_or("", String::as_str);
    for (name, value) in [
        ("senderId", posted.sender_id.as_str()),
        ("senderName", &posted.sender_name),
        ("groupId", &posted.group_id),
        ("conversation", conversation),
        ("button", &posted.button),
    ] {
        if value.len() > MAX_FIELD_BYTES {
            return Err(format!("{name} has {} bytes, and may have {MAX_FIELD_BYTES}", value.len()));
        }
    }
    if posted.sender_id.is_empty() {
        return Err("senderId is empty".to_owned());
    }
    if posted.text.len() > MAX_TEXT_BYTES {
        return Err(format!(
            "text has {} bytes, and may have {MAX_TEXT_BYTES}: send it in parts",
            posted.text.len()
        ));
    }
    let media = posted.media.as_deref().unwrap_or_default();
    if media.len() > MAX_FILES {
        return Err(format!("media has {} files, and may have {MAX_FILES}", media.len()));
    }
    let (files, note) = files(media)?;
    let text = format!("{}{note}", posted.text);
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!(
            "text has no room for what is said of a file whose url is longer than {MAX_FILE_ID_BYTES} bytes: send it in parts"
        ));
    }
    let says_something = !text.trim().is_empty() || !files.is_empty();
    if says_something != posted.button.is_empty() {
        return Err("there is either a text, with media or without, or a button".to_owned());
    }
    let (topic, what) =
        if posted.button.is_empty() { (MESSAGE_TOPIC, "wrote") } else { (BUTTON_TOPIC, "pressed a button") };
    let who = if posted.sender_name.is_empty() { &posted.sender_id } else { &posted.sender_name };
    let mut event = SourceEvent::new(&posted.id, topic, format!("{who} {what}"))
        .details(text)
        .field("conversation", conversation)
        .field("sender_id", &posted.sender_id)
        .field("sender_name", &posted.sender_name)
        .field("mentioned", if posted.mentioned { "true" } else { "false" });
    if posted.is_group {
        event = event.field("group_id", &posted.group_id);
    }
    if !posted.button.is_empty() {
        event = event.field("button", &posted.button);
    }
    Ok(with_files(event, &files))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Promises: GW-213
    #[test]
    fn what_is_posted_is_a_message_a_button_or_refused_with_a_reason() {
        let of = |value: serde_json::Value| event(value.to_string().as_bytes());
        let direct = of(json!({"id": "m/1", "senderId": "ada", "senderName": "Ada", "text": "hello"}))
            .expect("a message");
        assert_eq!((direct.topic(), direct.value("conversation")), ("channel.message", Some("ada")));
        let group = of(
            json!({"id": "m/1", "senderId": "ada", "text": "hi", "isGroup": true, "groupId": "ops", "mentioned": true}),
        );
        let group = group.expect("a message");
        assert_eq!(
            (group.value("group_id"), group.value("mentioned"), group.value("conversation")),
            (Some("ops"), Some("true"), Some("ops"))
        );
        let files = json!([{"url": "https://desk.example.org/7", "name": "plan.pdf", "bytes": 9}]);
        let sent = of(json!({"id": "m/1", "senderId": "ada", "media": files})).expect("a message");
        assert_eq!(
            sent.value("file_1"),
            Some(r#"{"id":"https://desk.example.org/7","name":"plan.pdf","bytes":9}"#)
        );
        assert!(of(json!({"id": "m/1", "senderId": "ada", "text": "x", "media": null})).is_ok());
        let long = json!([{"url": "https://desk.example.org/7"}, {"url": "x".repeat(257)}]);
        let sent =
            of(json!({"id": "m/1", "senderId": "ada", "text": "look", "media": long})).expect("a message");
        let text = "look\n\n(A file was not passed on: file 2: its URL is longer than 256 bytes.)";
        assert_eq!((sent.details_text(), sent.value("file_2")), (text, None));
        let button = of(json!({"id": "m/2", "senderId": "ada", "button": "a:1:2"})).expect("a button");
        assert_eq!((button.topic(), button.value("button")), ("channel.button", Some("a:1:2")));
        for (wrong, says) in [
            (json!([]), "the body is none"),
            (json!({"id": "m/1", "senderId": "ada", "text": "x", "sender": "y"}), "unknown field"),
            (json!({"id": "", "senderId": "ada", "text": "x"}), "id is 1 to"),
            (json!({"id": "a b", "senderId": "ada", "text": "x"}), "id is 1 to"),
            (json!({"id": "m", "senderId": "", "text": "x"}), "senderId is empty"),
            (json!({"id": "m", "senderId": "ada", "text": "x", "isGroup": true}), "isGroup"),
            (json!({"id": "m", "senderId": "ada", "text": "x", "groupId": "ops"}), "isGroup"),
            (json!({"id": "m", "senderId": "ada"}), "either a text"),
            (json!({"id": "m", "senderId": "ada", "text": "x", "button": "b"}), "either a text"),
            (json!({"id": "m", "senderId": "ada", "text": "x", "media": [{"url": "a b"}]}), "media: url"),
            (
                json!({"id": "m", "senderId": "ada", "media": vec![json!({"url": "a"}); 9]}),
                "media has 9 files",
            ),
            (json!({"id": "m", "senderId": "ada", "text": "x".repeat(20000)}), "send it in parts"),
            (
                json!({"id": "m", "senderId": "ada", "text": "x".repeat(MAX_TEXT_BYTES), "media": [{"url": "x".repeat(257)}]}),
                "text has no room",
            ),
            (json!({"id": "m", "senderId": "a".repeat(600), "text": "x"}), "senderId has 600 bytes"),
        ] {
            let error = of(wrong).expect_err(says);
            assert!(error.contains(says) && error.len() < 400, "{error}");
        }
    }
}
