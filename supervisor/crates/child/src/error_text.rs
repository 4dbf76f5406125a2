//! Error texts.

/// Maximum length of a gRPC error text. It travels in HTTP/2 headers, where 16 KiB break the connection.
pub const MAX_STATUS_BYTES: usize = 2 << 10;

/// Cuts a text so that it fits into a header.
#[must_use]
pub fn truncate(mut text: String) -> String {
    if text.len() > MAX_STATUS_BYTES {
        text.truncate(text.floor_char_boundary(MAX_STATUS_BYTES));
        text.push('…');
    }
    text
}
