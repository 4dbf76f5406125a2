//! Converts the bytes of a response to readable text.

use std::io::Cursor;

use talon_sdk::{OrToolError, ToolError};

use crate::nesting::is_within_limits;

/// The width of the text that is rendered from HTML, in columns; comfortable to read.
const COLUMNS: usize = 100;

/// The type of a response, by its Content-Type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaKind {
    Html,
    Text,
}

/// Whether a media type can be shown as text.
///
/// # Errors
/// Names the media type of the response.
pub(crate) fn kind(content_type: &str) -> Result<MediaKind, ToolError> {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match media.as_str() {
        "text/html" | "application/xhtml+xml" => Ok(MediaKind::Html),
        ""
        | "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/toml" => Ok(MediaKind::Text),
        text if text.starts_with("text/") || text.ends_with("+json") || text.ends_with("+xml") => {
            Ok(MediaKind::Text)
        }
        other => Err(ToolError::new(format!("the response is {other}, not text; only text can be fetched"))),
    }
}

/// Decodes bytes as the Content-Type says: UTF-8, or Latin-1 if declared. Invalid bytes show as `�`.
pub(crate) fn decode(bytes: &[u8], content_type: &str) -> String {
    let charset = content_type
        .split(';')
        .filter_map(|part| part.trim().split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase());
    match charset.as_deref() {
        Some("iso-8859-1" | "latin1" | "windows-1252" | "iso-8859-15") => {
            bytes.iter().map(|byte| char::from(*byte)).collect()
        }
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The text of an HTML page.
pub(crate) fn html_to_text(html: &str) -> Result<String, ToolError> {
    if !is_within_limits(html) {
        return Err(ToolError::new("the page's HTML nests too deep to be made readable"));
    }
    let text = html2text::config::plain_no_decorate()
        .link_footnotes(true)
        // Deep lists and tables leave no width; wide lines are better than none.
        .allow_width_overflow()
        .string_from_read(Cursor::new(html.as_bytes()), COLUMNS)
        .or_tool_error("the page's HTML cannot be made readable")?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_readable() {
        for html in ["text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml"] {
            assert_eq!(kind(html).expect(html), MediaKind::Html);
        }
        for text in
            ["text/plain", "application/json", "application/ld+json", "application/rss+xml", "", "text/csv"]
        {
            assert_eq!(kind(text).expect(text), MediaKind::Text);
        }
        for other in ["image/png", "application/pdf", "application/octet-stream", "video/mp4"] {
            assert!(kind(other).expect_err(other).message().contains(other));
        }
    }

    #[test]
    fn bytes_are_decoded_as_they_say() {
        assert_eq!(decode(b"caf\xe9", "text/plain; charset=ISO-8859-1"), "café");
        assert_eq!(decode(b"caf\xe9", "text/plain"), "caf\u{fffd}");
        assert_eq!(decode("café".as_bytes(), "text/plain; charset=\"utf-8\""), "café");
    }

    #[test]
    fn html_becomes_text_with_its_links_below() {
        let html = "<title>T</title><h1>Head</h1><p>One <b>two</b> <a href='https://example.org/x'>three</a></p>\
                    <script>alert(1)</script><style>p{}</style><ul><li>item</ul>";
        let text = html_to_text(html).expect("readable");
        assert!(text.contains("Head") && text.contains("One two") && text.contains("item"), "{text}");
        assert!(text.contains("https://example.org/x"), "{text}");
        assert!(!text.contains("alert") && !text.contains("p{}"), "{text}");
    }

    // Promises: EX-4
    #[test]
    fn the_worst_page_within_the_limits_still_ends() {
        for unit in ["<div>", "<table><tr><td>x", "<ul><li>x", "<blockquote>x"] {
            html_to_text(&(unit.repeat(120) + "x")).expect("readable");
        }
        html_to_text(&("<p>".to_owned() + &"<b id=x>".repeat(30) + &"<p>x".repeat(2000))).expect("readable");
    }
}
