//! Messages to Slack, with buttons (<https://docs.slack.dev/reference/methods/chat.postMessage>); and whether one was sent. Pure but for the
//! latter.

use serde::Deserialize;
use serde_json::{Value, json};
use talon_sdk::channel::ChannelButton;

use crate::api::Api;
use crate::api_error::ApiError;
use crate::conversation::Conversation;
use crate::plain_text::{escaped, escaped_units};
use crate::token_kind::TokenKind;

/// The longest text of a message, as sent. 4,000: what Slack recommends; of more than 40,000 it drops the end.
pub(crate) const MAX_UNITS: usize = 4000;
/// The longest text of a section, and so of a message with buttons. Slack refuses a longer one.
pub(crate) const MAX_SECTION_UNITS: usize = 3000;
/// The longest label of a button.
const MAX_LABEL_UNITS: usize = 75;
/// The most buttons of a row.
const MAX_ROW_BUTTONS: usize = 5;
/// What our messages are called in their metadata, with which one is found again.
const METADATA_TYPE: &str = "talon_message";
/// How many of the latest messages of a conversation are looked through. 100: an attempt is uncertain for as long as the agent waits until the
/// next one, or a restart takes.
const LOOKED_THROUGH: &str = "100";

/// A text without anything that counts as markup, with an id by which it is found again.
pub(crate) fn message(
    to: &Conversation,
    id: &str,
    text: &str,
    buttons: &[ChannelButton],
) -> Vec<(&'static str, String)> {
    let text = escaped(text);
    let mut arguments = vec![
        ("channel", to.channel.clone()),
        // People see what was said: no emphasis, no links that hide where they lead, and no previews that nobody asked for.
        ("mrkdwn", "false".to_owned()),
        ("parse", "none".to_owned()),
        ("link_names", "false".to_owned()),
        ("unfurl_links", "false".to_owned()),
        ("unfurl_media", "false".to_owned()),
    ];
    if let Some(thread) = &to.thread {
        arguments.push(("thread_ts", thread.clone()));
    }
    if !id.is_empty() {
        let metadata = json!({"event_type": METADATA_TYPE, "event_payload": {"id": id}});
        arguments.push(("metadata", metadata.to_string()));
    }
    if !buttons.is_empty() {
        let section =
            json!({"type": "section", "text": {"type": "plain_text", "text": text, "emoji": false}});
        let rows = buttons.chunks(MAX_ROW_BUTTONS).enumerate().map(|(row, buttons)| {
            let buttons = buttons.iter().enumerate().map(|(number, button)| {
                // What a press says is the value; Slack wants another id for each button.
                json!({
                    "type": "button", "action_id": format!("talon-{row}-{number}"), "value": button.id,
                    "text": {"type": "plain_text", "text": label(&button.label), "emoji": false},
                })
            });
            json!({"type": "actions", "elements": buttons.collect::<Vec<_>>()})
        });
        let blocks: Vec<Value> = std::iter::once(section).chain(rows).collect();
        arguments.push(("blocks", Value::Array(blocks).to_string()));
    }
    arguments.push(("text", text));
    arguments
}

/// What stands on a button, within Slack's limit.
fn label(text: &str) -> String {
    let units: usize = text.chars().map(escaped_units).sum();
    if units <= MAX_LABEL_UNITS {
        return escaped(text);
    }
    let (mut label, mut sum) = (String::new(), '…'.len_utf16());
    for c in text.chars() {
        sum += escaped_units(c);
        if sum > MAX_LABEL_UNITS {
            break;
        }
        label.push(c);
    }
    label.push('…');
    escaped(&label)
}

/// A page of messages.
#[derive(Deserialize)]
struct History {
    #[serde(default)]
    messages: Vec<SentMessage>,
}

#[derive(Deserialize)]
struct SentMessage {
    #[serde(default)]
    metadata: Value,
}

/// Whether a message with this id stands among the latest ones of a conversation.
pub(crate) async fn was_sent(api: &Api, to: &Conversation, id: &str, after: &str) -> Result<bool, ApiError> {
    let mut arguments = vec![
        ("channel", to.channel.as_str()),
        ("include_all_metadata", "true"),
        ("limit", LOOKED_THROUGH),
        ("oldest", after),
    ];
    let method = match &to.thread {
        None => "conversations.history",
        Some(thread) => {
            arguments.push(("ts", thread.as_str()));
            "conversations.replies"
        }
    };
    let history: History = api.call(TokenKind::Bot, method, &arguments).await?;
    Ok(history.messages.iter().any(|message| {
        message.metadata["event_type"] == METADATA_TYPE && message.metadata["event_payload"]["id"] == id
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(arguments: &'a [(&'static str, String)], name: &str) -> Option<&'a str> {
        arguments.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }

    // Promises: GW-283
    #[test]
    fn a_message_has_no_markup_its_place_and_its_buttons() {
        let to = Conversation::parse("C123/1355517523.000005").expect("a conversation");
        let button = |id: &str| ChannelButton { id: id.to_owned(), label: format!("<!here> {id}") };
        let buttons: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(button).into();
        let sent = message(&to, "m1", "<!channel> *hi*", &buttons);
        assert_eq!((of(&sent, "channel"), of(&sent, "thread_ts")), (Some("C123"), Some("1355517523.000005")));
        assert_eq!((of(&sent, "text"), of(&sent, "mrkdwn")), (Some("&lt;!channel&gt; *hi*"), Some("false")));
        let blocks: Value = serde_json::from_str(of(&sent, "blocks").expect("blocks")).expect("JSON");
        assert_eq!(
            blocks[0]["text"],
            json!({"type": "plain_text", "text": "&lt;!channel&gt; *hi*", "emoji": false})
        );
        let last = &blocks[2]["elements"][0];
        assert_eq!((&last["value"], &last["text"]["text"]), (&json!("f"), &json!("&lt;!here&gt; f")));
        assert_ne!(last["action_id"], blocks[1]["elements"][0]["action_id"]);
        let metadata: Value = serde_json::from_str(of(&sent, "metadata").expect("metadata")).expect("JSON");
        assert_eq!(metadata["event_payload"]["id"], "m1");

        let direct = message(&Conversation::parse("D7").expect("one"), "", "hi", &[]);
        assert_eq!(
            (of(&direct, "thread_ts"), of(&direct, "blocks"), of(&direct, "metadata")),
            (None, None, None)
        );
    }

    #[test]
    fn a_long_label_is_cut_within_slacks_limit() {
        for text in ["Allow".to_owned(), "x".repeat(75), "x".repeat(76), "&".repeat(40), "😀".repeat(60)] {
            let label = label(&text);
            assert!(label.encode_utf16().count() <= 75, "{label}");
            assert_eq!(label == escaped(&text), !label.ends_with('…'), "{label}");
        }
    }
}
