//! Durations, sizes and uid ranges as people write them: `1m30s`, `64KiB`, `70000-79999`. The same syntax is
//! used in the config file, in a `plugin.yaml` and on the command line.
//!
//! Every type can parse what it prints. A duration always has a unit, because `timeout: 30` could mean
//! seconds, milliseconds or nanoseconds. A size may be a bare number, because keys that end in `_bytes` can
//! only mean bytes.

mod bytes;
mod duration;
mod uid_range;

pub use bytes::{BYTES_FORMAT, ByteSize, ParseSizeError};
pub use duration::{DURATION_FORMAT, Duration, MAX_DURATION, ParseDurationError};
pub use uid_range::{ParseUidRangeError, UID_RANGE_FORMAT, UidRange};

/// The longest text that is parsed; every sensible duration or size is shorter.
const MAX_TEXT_BYTES: usize = 64;

/// Truncates a text for a message.
fn excerpt(text: &str) -> String {
    const SHOWN_CHARS: usize = 40;
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Parses a decimal number at the start of a text, as `whole + fraction / scale`. Also returns the rest of
/// the text.
fn parse_number(text: &str) -> Option<(u128, u128, u128, &str)> {
    /// More than nine decimals would be less than a nanosecond.
    const MAX_DECIMALS: usize = 9;
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (whole, rest) = text.split_at(digits(text));
    let whole: u128 = whole.parse().ok()?;
    let Some(after_point) = rest.strip_prefix('.') else { return Some((whole, 0, 1, rest)) };
    let (decimals, rest) = after_point.split_at(digits(after_point));
    if decimals.is_empty() || decimals.len() > MAX_DECIMALS {
        return None;
    }
    let scale = decimals.bytes().fold(1, |scale, _| scale * 10);
    Some((whole, decimals.parse().ok()?, scale, rest))
}

#[cfg(test)]
mod tests;
