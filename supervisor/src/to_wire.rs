//! Conversion of texts, counts and times for clients.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talon_listen::DRAINING;
use talon_sanitize::{Raw, SafeDisplay};
use tonic::Status;

/// Maximum length of a gRPC error text. It travels in HTTP/2 headers, where 16 KiB break the connection; a
/// sentence is far below.
const MAX_STATUS_BYTES: usize = 2 << 10;

/// The answer to a request that the supervisor takes no more, because it drains.
pub(crate) fn draining() -> Status {
    Status::unavailable(format!(
        "{DRAINING} and takes no new calls: try again once it has been started again"
    ))
}

/// Neutralizes a text that may contain untrusted parts, and cuts it so that it fits into a header.
pub(crate) fn status_text<'t>(text: impl Into<Raw<'t>>) -> String {
    text.into().line_within(MAX_STATUS_BYTES).into_string()
}

/// Converts a text for a client to a plain string. Only displayable text is accepted:
/// [`Sanitized`](talon_sanitize::Sanitized) and the supervisor's own constants.
pub(crate) fn wire(text: impl SafeDisplay) -> String {
    text.to_string()
}

/// A count for the wire; ours never come near the limit.
pub(crate) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A point in time for the wire; 0 before 1970.
pub(crate) fn unix_ms(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    pub(crate) fn status_texts_fit_into_a_header() {
        assert_eq!(status_text("short"), "short");
        assert_eq!(status_text("a <think>\n\u{1b}[2J"), "a <·think>\\n␛[2J");
        let cut = status_text("ä".repeat(MAX_STATUS_BYTES));
        assert!(cut.len() <= MAX_STATUS_BYTES + '…'.len_utf8() && cut.ends_with("ä…"), "{}", cut.len());
    }
}
