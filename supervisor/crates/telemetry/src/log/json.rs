//! A line as one JSON object.

use serde_json::{Map, Value};

use super::line::Line;
use super::neutralize;

/// The keys of every line. A field with the same name gets a `_` appended.
const RESERVED: [&str; 4] = ["timestamp", "level", "target", "message"];

/// The neutralized line with its line break.
pub(crate) fn line(line: &Line) -> Vec<u8> {
    let mut object = Map::new();
    object.insert("timestamp".to_owned(), humantime::format_rfc3339_micros(line.at).to_string().into());
    object.insert("level".to_owned(), line.level.as_str().into());
    object.insert("target".to_owned(), line.target.as_str().into());
    object.insert("message".to_owned(), line.message.as_str().into());
    for (name, value) in line.fields.iter() {
        let name = if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() };
        object.insert(name, value);
    }
    let mut text = neutralize::json(Value::Object(object).to_string());
    text.push('\n');
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::json;
    use tracing::Level;

    use super::*;
    use crate::log::line::Fields;

    // Promises: TRACE-7
    #[test]
    fn fields_are_flat_and_inert_and_take_nothing_from_the_lines_own() {
        let mut fields = Fields::default();
        fields.set("call_id", "c1".into());
        fields.set("level", "<think>".into());
        fields.set("n", 7.into());
        let made = Line {
            at: SystemTime::UNIX_EPOCH,
            level: Level::WARN,
            target: "plugin".to_owned(),
            message: "\u{9b}2J said <|im_start|>".to_owned(),
            fields,
        };
        let text = String::from_utf8(line(&made)).unwrap();
        assert!(text.ends_with("}\n"), "{text}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            read,
            json!({
                "timestamp": "1970-01-01T00:00:00.000000Z", "level": "WARN", "target": "plugin",
                "message": "(U+009B)2J said <·|im_start|>", "call_id": "c1", "level_": "<·think>", "n": 7,
            })
        );
    }
}
