//! What is sent, in each format.

use serde::Serialize;
use talon_sdk::{Event, Notification};
use talon_sink::text::text;

use crate::markup::{Discord, Slack};
use crate::settings::Format;

/// The version of the format `json`. It grows when a field changes its meaning; new fields do not change it.
const VERSION: u32 = 1;
/// The longest text for Slack, in UTF-16 units: what it advises; it cuts ten times as much.
const MAX_SLACK_UNITS: usize = 4000;
/// The longest text that Discord takes.
const MAX_DISCORD_UNITS: usize = 2000;

/// The body of `format: json`.
#[derive(Serialize)]
struct Json<'a> {
    version: u32,
    event: &'a Event,
    #[serde(skip_serializing_if = "<[Event]>::is_empty")]
    events: &'a [Event],
    attempt: u32,
}

#[derive(Serialize)]
struct SlackText {
    text: String,
    /// Nobody asked for previews of links in data.
    unfurl_links: bool,
    unfurl_media: bool,
}

#[derive(Serialize)]
struct DiscordText {
    content: String,
    allowed_mentions: AllowedMentions,
}

/// Nobody is mentioned, whatever a text says.
#[derive(Serialize)]
struct AllowedMentions {
    parse: [&'static str; 0],
}

/// The body of a request.
pub(crate) fn body(format: Format, asked: &Notification) -> serde_json::Result<Vec<u8>> {
    let Notification { event, events, attempt } = asked;
    match format {
        Format::Json => serde_json::to_vec(&Json { version: VERSION, event, events, attempt: *attempt }),
        Format::Slack => serde_json::to_vec(&SlackText {
            text: text(event, events, &Slack, MAX_SLACK_UNITS),
            unfurl_links: false,
            unfurl_media: false,
        }),
        Format::Discord => serde_json::to_vec(&DiscordText {
            content: text(event, events, &Discord, MAX_DISCORD_UNITS),
            allowed_mentions: AllowedMentions { parse: [] },
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use talon_sink::text::units;

    use super::*;

    fn sent(format: Format, asked: &Notification) -> Value {
        serde_json::from_slice(&body(format, asked).expect("JSON")).expect("JSON")
    }

    fn notification() -> Notification {
        let event = json!({
            "id": "01K1", "kind": "test", "severity": "info", "summary": "@everyone", "time_unix_ms": 1_780_000_000_000_u64,
        });
        serde_json::from_value(json!({"event": event, "attempt": 2})).expect("a notification")
    }

    #[test]
    fn json_has_the_whole_event() {
        let said = sent(Format::Json, &notification());
        assert_eq!((&said["version"], &said["attempt"]), (&json!(1), &json!(2)));
        assert_eq!(said["event"]["summary"], "@everyone");
        assert_eq!(said.get("events"), None);
    }

    // Promises: EXT-78
    #[test]
    fn chat_services_get_a_text_within_their_limit_that_mentions_nobody() {
        let mut asked = notification();
        asked.event.details = "\u{1f600}\\`".repeat(5000);
        let discord = sent(Format::Discord, &asked);
        assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
        let content = discord["content"].as_str().expect("a text");
        assert!(units(content) <= 2000 && units(content) > 1900 && content.ends_with("…\n```"), "{content}");
        let slack = sent(Format::Slack, &asked);
        let content = slack["text"].as_str().expect("a text");
        assert!(units(content) <= 4000 && content.contains("@\u{200b}everyone"), "{content}");
    }
}
