//! Converts a server's result to a tool's answer.
//!
//! Texts are joined. Other content is described in the text, and stands beside it as media, which the host
//! passes on where its operator grants that. A result is decoded field by field from JSON, so that a malformed
//! item costs only that item and not the answer.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use talon_bridge::text::cut;
use talon_sdk::proto::Media;
use talon_sdk::{IntoOutput, Output, ToolError};

/// How much of a name, a URI or a type is shown.
const MAX_LABEL_BYTES: usize = 400;
/// The most items of one result that are processed.
const MAX_ITEMS: usize = 10_000;
/// The longest answer that is assembled, in bytes; the SDK refuses a longer one with an error that says so.
const MAX_TEXT_BYTES: usize = talon_sdk::MAX_RESULT_BYTES + 1;

/// The most media of one result; the host passes on 16 by default.
const MAX_MEDIA: usize = 64;
/// The most bytes of all of them: what leaves room for some text in one message to the host.
const MAX_MEDIA_BYTES: usize = 6 << 20;
/// The most that an item's other fields and its framing have.
const MEDIA_OVERHEAD_BYTES: usize = 6 * MAX_LABEL_BYTES;
/// Base64 as servers write it: with padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The answer of a tool.
pub(crate) fn answer(result: Value) -> Result<Output, ToolError> {
    match result.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => {}
        Some("input_required") => {
            return Err(ToolError::new(
                "the tool asks for input from a person or a model in the middle of its work (MCP elicitation or sampling), \
                 which this caller cannot give: give all it needs as arguments, use a tool that does not ask, or call it where \
                 a person can answer, such as with `talon call` in a terminal",
            ));
        }
        Some(other) => {
            let other = cut(other, MAX_LABEL_BYTES);
            return Err(ToolError::new(format!(
                "the tool answered with a `{other}` instead of a result, which is not understood here"
            )));
        }
    }
    let mut media = MediaBudget::default();
    let text = content(&result, &mut media);
    let structured = result.get("structuredContent").filter(|value| !value.is_null()).cloned();
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let text = match (text.trim().is_empty(), structured) {
            (true, Some(structured)) => structured.to_string(),
            _ => text,
        };
        return Err(ToolError::new(text));
    }
    match structured {
        Some(structured) if text.is_empty() => structured.into_output(),
        Some(structured) => Output::text(text).structured(structured).map(|output| media.add_to(output)),
        None if text.is_empty() && result.get("content").is_none() => Err(ToolError::new(format!(
            "the tool's result holds no content: {}",
            cut(&result.to_string(), MAX_LABEL_BYTES)
        ))),
        None => Ok(media.add_to(Output::text(text))),
    }
}

fn content(result: &Value, media: &mut MediaBudget) -> String {
    let items = result.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut text = String::new();
    for (index, item) in items.iter().enumerate() {
        if index == MAX_ITEMS || text.len() > MAX_TEXT_BYTES {
            text.push_str(&format!("\n[{} further items, not shown]", items.len() - index));
            break;
        }
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&described(item, media));
    }
    text
}

fn described(item: &Value, media: &mut MediaBudget) -> String {
    let word = |from: &Value, key: &str| {
        from.get(key).and_then(Value::as_str).map(|text| cut(text, MAX_LABEL_BYTES))
    };
    let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "text" => item.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        "image" | "audio" => {
            let mime = word(item, "mimeType");
            let data = item.get("data").and_then(Value::as_str).unwrap_or_default();
            let of = Media { mime_type: mime.clone().unwrap_or_default(), ..kind_of(kind) };
            let problem = media.add_encoded(of, data);
            let mime = mime.unwrap_or_else(|| "of an unknown type".to_owned());
            format!("[{kind} {mime}, {} bytes{problem}]", decoded_bytes(data))
        }
        "resource_link" => {
            let mut parts = vec![format!("resource {}", word(item, "uri").unwrap_or_default())];
            parts.extend(word(item, "title").or_else(|| word(item, "name")));
            parts.extend(word(item, "mimeType"));
            parts.extend(item.get("size").and_then(Value::as_u64).map(|size| format!("{size} bytes")));
            parts.extend(word(item, "description"));
            let text = |key: &str| word(item, key).unwrap_or_default();
            media.add(Media {
                uri: text("uri"),
                name: text("name"),
                title: text("title"),
                description: text("description"),
                mime_type: text("mimeType"),
                size: item.get("size").and_then(Value::as_u64).unwrap_or_default(),
                ..kind_of("link")
            });
            format!("[{}, not read]", parts.join(", "))
        }
        "resource" => {
            let resource = item.get("resource").unwrap_or(&Value::Null);
            let uri = word(resource, "uri").unwrap_or_default();
            let of = || Media {
                uri: uri.clone(),
                mime_type: word(resource, "mimeType").unwrap_or_default(),
                ..kind_of("resource")
            };
            let mime = word(resource, "mimeType").map(|mime| format!(", {mime}")).unwrap_or_default();
            match (resource.get("text").and_then(Value::as_str), resource.get("blob").and_then(Value::as_str))
            {
                (Some(text), _) => {
                    media.add(Media { text: text.to_owned(), ..of() });
                    format!("[resource {uri}{mime}]\n{text}")
                }
                (None, Some(blob)) => {
                    let problem = media.add_encoded(of(), blob);
                    format!("[resource {uri}{mime}, {} bytes{problem}]", decoded_bytes(blob))
                }
                (None, None) => format!("[resource {uri}{mime}, empty]"),
            }
        }
        _ => format!("[content of the unknown type {:?}, not shown]", cut(kind, MAX_LABEL_BYTES)),
    }
}

/// The media of one result, up to what fits into an answer beside its text.
#[derive(Debug, Default)]
struct MediaBudget {
    media: Vec<Media>,
    bytes: usize,
}

impl MediaBudget {
    /// Adds an item, unless the budget is used up. Whether it was added.
    fn add(&mut self, item: Media) -> bool {
        let bytes = item.data.len() + item.text.len() + MEDIA_OVERHEAD_BYTES;
        let fits = self.media.len() < MAX_MEDIA && self.bytes + bytes <= MAX_MEDIA_BYTES;
        if fits {
            self.bytes += bytes;
            self.media.push(item);
        }
        fits
    }

    /// Adds an item whose bytes come in base64. What is wrong with it, for its line in the text.
    fn add_encoded(&mut self, item: Media, base64: &str) -> &'static str {
        if decoded_bytes(base64) > MAX_MEDIA_BYTES {
            return ", too large to be passed on";
        }
        let Ok(data) = LENIENT.decode(base64) else { return ", not passed on: its data is no base64" };
        if self.add(Media { data, ..item }) { "" } else { ", not passed on: the answer has too much of it" }
    }

    /// Adds what fits beside the answer's text.
    fn add_to(self, output: Output) -> Output {
        let structured = output.structured_content().map_or(0, |value| value.to_string().len());
        let mut room =
            talon_sdk::MAX_RESULT_BYTES.saturating_sub(output.content().len()).saturating_sub(structured);
        self.media.into_iter().fold(output, |output, item| {
            let bytes = item.data.len() + item.text.len() + MEDIA_OVERHEAD_BYTES;
            match room.checked_sub(bytes) {
                Some(left) => {
                    room = left;
                    output.with_media(item)
                }
                None => output,
            }
        })
    }
}

fn kind_of(kind: &str) -> Media {
    Media { kind: kind.to_owned(), ..Media::default() }
}

/// How many bytes a base64 text encodes.
fn decoded_bytes(base64: &str) -> usize {
    let digits = base64.trim_end_matches('=').len();
    digits / 4 * 3
        + match digits % 4 {
            2 => 1,
            3 => 2,
            _ => 0,
        }
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;
