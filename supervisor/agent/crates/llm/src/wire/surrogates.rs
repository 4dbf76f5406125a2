//! Characters that a server has cut in two.
//!
//! A server that counts text in UTF-16 units cuts a character outside the basic plane in the middle: one frame ends its
//! text with the escape of a high surrogate (`"\ud83d"`), the next begins its text with the low one (`"\ude00"`). Neither
//! is a character, and no JSON reader of Rust takes them (RFC 8259, section 8.2, allows such texts and warns of them).

use super::Frame;

/// Bytes of an escape: `\u` and four hexadecimal digits.
const ESCAPE_BYTES: usize = 6;

/// Puts the halves of characters of one stream together again, across its frames.
#[derive(Debug, Default)]
pub(crate) struct SurrogatePairs {
    /// The escape of a high surrogate at the end of a text, whose other half has to come yet. Without it the half is
    /// lost, which is all that was left of the character.
    high: Option<String>,
}

impl SurrogatePairs {
    /// Makes the frame's data JSON that can be read: a half at the end of a text goes in front of the other half, which
    /// begins a text of a later frame; any other lone half becomes U+FFFD.
    pub(crate) fn join(&mut self, frame: &mut Frame) {
        // Nearly every frame has none.
        if has_surrogate(&frame.data) {
            frame.data = self.joined(&frame.data);
        }
    }

    fn joined(&mut self, data: &str) -> String {
        let mut joined = String::with_capacity(data.len() + ESCAPE_BYTES);
        let mut rest = data;
        while let Some(at) = rest.find('\\') {
            joined.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = match surrogate(rest) {
                Some(Half::High) if surrogate(&rest[ESCAPE_BYTES..]) == Some(Half::Low) => {
                    joined.push_str(&rest[..2 * ESCAPE_BYTES]);
                    2 * ESCAPE_BYTES
                }
                Some(Half::High) if rest[ESCAPE_BYTES..].starts_with('"') => {
                    self.high = Some(rest[..ESCAPE_BYTES].to_owned());
                    ESCAPE_BYTES
                }
                Some(Half::Low) if joined.ends_with('"') && self.high.is_some() => {
                    joined.push_str(&self.high.take().unwrap_or_default());
                    joined.push_str(&rest[..ESCAPE_BYTES]);
                    ESCAPE_BYTES
                }
                Some(_) => {
                    joined.push(char::REPLACEMENT_CHARACTER);
                    ESCAPE_BYTES
                }
                // Another escape; what follows the backslash is passed by, since it may be one itself.
                None => {
                    let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    joined.push_str(&rest[..length]);
                    length
                }
            };
            rest = &rest[length..];
        }
        joined.push_str(rest);
        joined
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

/// The half of a character whose escape this text begins with.
fn surrogate(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

fn has_surrogate(data: &str) -> bool {
    data.match_indices("\\u").any(|(at, _)| surrogate(&data[at..]).is_some())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn join(pieces: &[String]) -> Vec<String> {
        let mut pairs = SurrogatePairs::default();
        let read = pieces.iter().map(|piece| {
            let mut frame = Frame { event: String::new(), data: piece.clone() };
            pairs.join(&mut frame);
            let value: Value = serde_json::from_str(&frame.data).expect(piece);
            value["text"].as_str().expect("a text").to_owned()
        });
        read.collect()
    }

    /// What `JSON.stringify` makes of a text of UTF-16 units, halves of characters included (ECMA-262, section 25.5.2.3).
    fn stringify(units: &[u16]) -> String {
        let mut json = String::from("{\"text\":\"");
        for unit in char::decode_utf16(units.iter().copied()) {
            match unit {
                Ok(character) => {
                    let quoted = Value::from(character.to_string()).to_string();
                    json.push_str(&quoted[1..quoted.len() - 1]);
                }
                Err(half) => json.push_str(&format!("\\u{:04x}", half.unpaired_surrogate())),
            }
        }
        json + "\"}"
    }

    #[test]
    fn a_half_without_another_is_replaced_and_what_only_looks_like_one_stays() {
        let texts = [r#"{"text":"a\ude00"}"#, r#"{"text":"\ud83dx\uD83D\uDE00"}"#, r#"{"text":"\\ud83d\n"}"#];
        assert_eq!(join(&texts.map(str::to_owned)), ["a\u{fffd}", "\u{fffd}x😀", "\\ud83d\n"]);
        // Frames without text may come between the halves; a half whose other never comes is left out.
        let apart =
            [r#"{"text":"\ud83d"}"#, r#"{"text":""}"#, r#"{"text":"\ude00!"}"#, r#"{"text":"\ud83d"}"#];
        assert_eq!(join(&apart.map(str::to_owned)), ["", "", "😀!", ""]);
    }

    #[test]
    fn what_is_no_json_stays_as_it_is_or_at_least_is_no_panic() {
        for text in
            ["[DONE]", "\\", "\\u", "\\ud8", "\\ud83d", "\\ud83d\\", "\\ud83d\\u", "ä\\ud83dä", "\\ü\\ud83d"]
        {
            let mut frame = Frame { event: String::new(), data: text.to_owned() };
            SurrogatePairs::default().join(&mut frame);
            assert!(frame.data == text || frame.data.contains(char::REPLACEMENT_CHARACTER), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_the_same_wherever_a_server_cuts_it(text in "[a-z\"\\\\äß→😀👩\u{200d}💻\n]{0,24}", size in 1_usize..5) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let pieces: Vec<String> = units.chunks(size).map(stringify).collect();
            prop_assert_eq!(join(&pieces).concat(), text);
        }
    }
}
