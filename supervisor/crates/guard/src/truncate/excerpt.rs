//! Shows beginning and end of a text that is too large, with the notice between them.

use super::{TruncateLayer, notice};
use crate::body::{Body, Part};
use crate::pages::{Pages, READ_MORE};
use crate::sanitized_answer::{Field, SanitizedAnswer};
use talon_sanitize::prefix;
use talon_sanitize::{FamilyCounts, Raw, Sanitized};

/// The end gets a quarter of the limit.
const TAIL_SHARE: usize = 4;

/// With a limit below this the end would be a few words without context. Then the beginning gets all of it.
const MIN_LIMIT: usize = 512;

/// How often to shorten an end that becomes too long when it is sanitized separately. Each time it is
/// shortened by the length of the marks. A text that still does not fit was built for that, and gets no end.
const MAX_TRIES: usize = 4;

impl TruncateLayer {
    /// Shows beginning and end of the content, and stores all of it if there is a store.
    pub(super) fn excerpt(&self, answer: &mut SanitizedAnswer, keep: Option<(&Pages, &str, &str)>) {
        let text = answer.0.content.whole();
        let limit = self.max_response_bytes;
        if answer.0.content.is_cut() || text.len() <= limit {
            return self.cut(answer, Field::Content);
        }
        let handle = keep.and_then(|(pages, scope, plugin)| {
            pages.store(scope, answer.0.written_by.as_deref().unwrap_or(plugin), text)
        });
        let tail_limit = if limit < MIN_LIMIT { 0 } else { limit / TAIL_SHARE };
        let head = self.head(text, limit - tail_limit);
        let (tail, tail_bytes) = self.tail(text, tail_limit, head.len());
        let left_out = text.len() - head.len() - tail_bytes;
        let at_the_end = answer.unreported_bytes(Field::Content);

        let here = if tail.is_empty() { "" } else { " here" };
        let more = match &handle {
            Some(handle) => format!("{here}; {READ_MORE} handle={handle} offset={} reads on", head.len()),
            None => here.to_owned(),
        };
        // Without an end, the bytes that the coarse cut removed directly follow those left out here.
        let announced = if tail.is_empty() { left_out + at_the_end } else { left_out };
        let mut parts = vec![Part::Text(head), Part::Notice(notice(announced, &more))];
        if !tail.is_empty() {
            parts.push(Part::Text(tail));
            if at_the_end > 0 {
                parts.push(Part::Notice(notice(at_the_end, "")));
            }
        }
        answer.replace(Field::Content, Body::from_parts(parts), left_out);
        answer.0.report.page = handle;
    }

    /// The end of a sanitized text, sanitized separately and within the limit, and how many bytes of the text
    /// it covers.
    fn tail(&self, text: &Sanitized, limit: usize, after: usize) -> (Sanitized, usize) {
        let mut wanted = limit;
        for _ in 0..MAX_TRIES {
            let from = text.ceil_char_boundary((text.len() - wanted).max(after));
            let from = from + line_start(&text[from..]);
            let tail = self.sanitizer.sanitize(Raw::from(&text[from..]), &mut FamilyCounts::default());
            match tail.len().checked_sub(limit) {
                None | Some(0) => return (tail, text.len() - from),
                Some(excess) => wanted = wanted.saturating_sub(excess),
            }
        }
        Default::default()
    }
}

/// Where the first whole line of a text begins, if that is near: an end that begins with a whole line reads
/// better.
fn line_start(text: &str) -> usize {
    prefix(text, text.len() / 4).find('\n').map_or(0, |at| at + 1)
}
