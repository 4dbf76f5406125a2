//! What a plugin may be shown of a conversation, if its action asks for it and the operator grants it: `task`,
//! this turn's message, and `conversation`, what was said in the turns before.
//!
//! Results of tools are not part of it, so that no plugin reads what another one answered.

use serde_json::{Value, json};
use talon_llm::model::{Message, NOTE_BEGINS};

use crate::context::HistoryMessage;

/// The name of this turn's message in a call's context.
pub(super) const TASK: &str = "task";
/// The name of the turns before.
pub(super) const CONVERSATION: &str = "conversation";

/// The most bytes of a conversation: some ten messages. Whatever a plugin needs beyond that, it should have as
/// an argument. Not configurable.
const MAX_BYTES: usize = 4 << 10;

/// What a person and the model said before this turn, as JSON of at most 4 KiB: `messages`, oldest first, each
/// with `role` (`user`, `assistant`) and `text`; and `left_out`, how many older ones did not fit. Empty before
/// the second turn.
pub(super) fn conversation(history: &[HistoryMessage], turn: u64) -> String {
    let before = history.iter().filter(|past| past.turn < turn);
    let said: Vec<Value> = before.filter_map(|past| message(&past.message)).collect();
    if said.is_empty() {
        return String::new();
    }
    // The newest that fit. The numbers and names around them take less than this.
    const AROUND_BYTES: usize = 64;
    let mut room = MAX_BYTES - AROUND_BYTES;
    let fits = |message: &&Value| {
        let bytes = message.to_string().len() + 1;
        room.checked_sub(bytes).map(|left| room = left).is_some()
    };
    let kept = said.iter().rev().take_while(fits).count();
    let left_out = said.len() - kept;
    json!({ "messages": said[left_out..], "left_out": left_out }).to_string()
}

fn message(message: &Message) -> Option<Value> {
    let (role, text) = match message {
        // Notes of the agent have the user's role.
        Message::User { text }
            if text.starts_with(NOTE_BEGINS) || text.starts_with("[The turn was ended") =>
        {
            return None;
        }
        Message::User { text } => ("user", text),
        Message::Assistant { text, .. } if !text.trim().is_empty() => ("assistant", text),
        Message::Assistant { .. }
        | Message::System { .. }
        | Message::Images { .. }
        | Message::Tool { .. } => return None,
    };
    Some(json!({ "role": role, "text": text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(texts: &[&str]) -> Vec<HistoryMessage> {
        let each = texts.iter().enumerate().map(|(at, text)| {
            let text = (*text).to_owned();
            let message = match at % 2 {
                0 => Message::User { text },
                _ => Message::Assistant { text, calls: Vec::new(), thoughts: None },
            };
            HistoryMessage { turn: at as u64 / 2 + 1, message }
        });
        each.collect()
    }

    // Promises: AGENT-97
    #[test]
    fn it_has_what_was_said_before_this_turn_and_no_results() {
        let mut said = history(&["one", "first", "two", "second", "three", ""]);
        let content = "an answer of another plugin".to_owned();
        let result = Message::Tool { call_id: "c".to_owned(), content, is_error: false };
        said.insert(1, HistoryMessage { turn: 1, message: result });
        let shown: Value = serde_json::from_str(&conversation(&said, 3)).expect("JSON");
        let message = |role: &str, text: &str| json!({ "role": role, "text": text });
        let messages = [
            message("user", "one"),
            message("assistant", "first"),
            message("user", "two"),
            message("assistant", "second"),
        ];
        assert_eq!(shown, json!({ "messages": messages, "left_out": 0 }));
        assert_eq!(conversation(&said, 1), "");
    }

    // Promises: AGENT-97
    #[test]
    fn the_oldest_are_left_out_and_counted() {
        let long = "ä".repeat(500);
        let text = conversation(&history(&[&long, &long, &long, &long, "four", "five"]), 9);
        assert!(text.len() <= MAX_BYTES, "{}", text.len());
        let shown: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(shown["left_out"], 1);
        assert_eq!(shown["messages"].as_array().map(Vec::len), Some(5));
        let longer = "x".repeat(2 * MAX_BYTES);
        assert_eq!(conversation(&history(&["a", &longer]), 9), r#"{"messages":[],"left_out":2}"#);
    }
}
