//! Text without a pattern.

use std::ops::Range;

use memchr::memmem::Finder;

use super::{Meter, PatternError};

/// The bytes that make a pattern of a text, as `string.find` sees it.
const SPECIAL: &[u8] = b"^$*+?.([%-";
/// How much is searched between two looks at the clock, beside the length of what is searched: 1 MiB takes about a millisecond
/// at worst.
const CHUNK_BYTES: usize = 1 << 20;
/// How many bytes of a search are one step of the meter: the search looks at many at once.
const BYTES_PER_STEP: usize = 16;

/// Whether nothing in it is special.
pub(crate) fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|byte| SPECIAL.contains(byte))
}

/// Where a text is, from this place on. The time is linear in both lengths.
///
/// # Errors
/// [`PatternError::Stopped`]: the time of the call is over.
pub(crate) fn find_plain(
    subject: &[u8],
    text: &[u8],
    from: usize,
    meter: &mut Meter<'_>,
) -> Result<Option<Range<usize>>, PatternError> {
    let finder = Finder::new(text);
    // Parts overlap by the text without a byte, so each is longer than that.
    let part = CHUNK_BYTES.max(text.len());
    let mut begin = from;
    loop {
        let end = subject.len().min(begin.saturating_add(part).saturating_add(text.len()));
        let searched = subject.get(begin..end).unwrap_or_default();
        meter.charge(searched.len() / BYTES_PER_STEP + 1)?;
        if let Some(at) = finder.find(searched) {
            let at = begin + at;
            return Ok(Some(at..at + text.len()));
        }
        if end == subject.len() {
            return Ok(None);
        }
        begin += part;
    }
}
