//! What comes over Socket Mode (<https://docs.slack.dev/apis/events-api/using-socket-mode>). Pure.

use serde::Deserialize;
use serde_json::{Value, json};

/// One message of the WebSocket.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// The connection is ready.
    Hello,
    /// The connection ends soon; with Slack's reason.
    Disconnect(String),
    /// Something that has to be acknowledged.
    Envelope(Envelope),
    /// Something of a later version, by its type.
    Other(String),
}

/// Something that Slack sends again unless it is acknowledged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope {
    /// With it Slack knows what is acknowledged. Another one each time that it is sent.
    pub(crate) id: String,
    /// `events_api`, `interactive`, `slash_commands`.
    pub(crate) kind: String,
    pub(crate) payload: Value,
    /// How often it was sent before.
    pub(crate) retries: u64,
}

#[derive(Deserialize)]
struct Message {
    r#type: String,
    #[serde(default)]
    envelope_id: Option<String>,
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    retry_attempt: Option<u64>,
}

impl Frame {
    /// Reads a message; `None` if it is none of Slack's.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let message: Message = serde_json::from_str(text).ok()?;
        if message.r#type == "hello" {
            return Some(Self::Hello);
        }
        if message.r#type == "disconnect" {
            return Some(Self::Disconnect(message.reason.unwrap_or_default()));
        }
        Some(match message.envelope_id {
            Some(id) => Self::Envelope(Envelope {
                id,
                kind: message.r#type,
                payload: message.payload,
                retries: message.retry_attempt.unwrap_or_default(),
            }),
            None => Self::Other(message.r#type),
        })
    }
}

/// What acknowledges an envelope.
pub(crate) fn acknowledgement(envelope: &str) -> String {
    json!({"envelope_id": envelope}).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_is_what_slack_documents() {
        let hello = r#"{"type":"hello","connection_info":{"app_id":"A1234"},"num_connections":1,
            "debug_info":{"host":"applink-7fc4fdbb64-4x5xq","started":"2020-10-11 12:12:12.120","build_number":54,"approximate_connection_time":18060}}"#;
        assert_eq!(Frame::read(hello), Some(Frame::Hello));
        let disconnect = r#"{"type":"disconnect","reason":"warning","debug_info":{"host":"applink-1"}}"#;
        assert_eq!(Frame::read(disconnect), Some(Frame::Disconnect("warning".to_owned())));
        let event = r#"{"payload":{"event":{"type":"message"}},"envelope_id":"dbdd0ef3","type":"events_api","accepts_response_payload":false,
            "retry_attempt":1,"retry_reason":"timeout"}"#;
        let Some(Frame::Envelope(envelope)) = Frame::read(event) else { panic!("an envelope") };
        assert_eq!(
            (envelope.id.as_str(), envelope.kind.as_str(), envelope.retries),
            ("dbdd0ef3", "events_api", 1)
        );
        assert_eq!(acknowledgement(&envelope.id), r#"{"envelope_id":"dbdd0ef3"}"#);
        assert_eq!(Frame::read(r#"{"type":"news"}"#), Some(Frame::Other("news".to_owned())));
        for none in ["", "{}", "[]", "Hello", r#"{"type":1}"#, r#"{"type":"events_api","envelope_id":7}"#] {
            assert_eq!(Frame::read(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn an_acknowledgement_is_json_whatever_the_id(id in any::<String>()) {
            let read: Value = serde_json::from_str(&acknowledgement(&id)).expect("JSON");
            prop_assert_eq!(read["envelope_id"].as_str(), Some(id.as_str()));
        }
    }
}
