//! Durations, sizes and ranges of uids as people write them: `1m30s`, `64KiB`, `70000-79999`. The same in the config
//! file, in a `plugin.yaml` and on the command line.
//!
//! Every type reads what it prints. A duration always carries a unit, because `timeout: 30` has been read as
//! seconds, as milliseconds and as nanoseconds by somebody; a size may be a bare number, because bytes are the
//! only unit a key that ends in `_bytes` can mean.

mod bytes;
mod duration;
mod uids;

pub use bytes::{BYTES_FORMAT, BadSize, ByteSize};
pub use duration::{BadDuration, DURATION_FORMAT, Duration, MAX_DURATION};
pub use uids::{BadUidRange, UID_RANGE_FORMAT, UidRange};

/// The longest text that is looked at; every sensible duration or size is shorter.
const MAX_TEXT_BYTES: usize = 64;

/// A text for a message: short, whatever it was.
fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 40;
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A decimal number at the start of a text, as `whole + fraction / scale`, and what follows it.
fn number(text: &str) -> Option<(u128, u128, u128, &str)> {
    /// Beyond nine decimals there is no nanosecond left to tell.
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
