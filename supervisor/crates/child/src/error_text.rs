//! Error texts.

use std::error::Error;

/// Maximum length of a gRPC error text. It travels in HTTP/2 headers, where 16 KiB break the connection.
pub const MAX_STATUS_BYTES: usize = 2 << 10;

/// An error with its causes in one line.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Cuts a text so that it fits into a header.
#[must_use]
pub fn truncate(mut text: String) -> String {
    if text.len() > MAX_STATUS_BYTES {
        text.truncate(text.floor_char_boundary(MAX_STATUS_BYTES));
        text.push('…');
    }
    text
}
