//! Stores answers that were too large for one block, so that a model can read on where the excerpt ends.
//!
//! A host offers a separate action for reading on (`talon.read_more`), whose answers pass the guard like any
//! other. The store holds sanitized text, bounded in bytes, number and age. A handle is 128 random bits and
//! works for callers of the same scope ([`CallFields::scope`](crate::CallFields::scope)) only. When the store
//! is full, the scope that takes up most of it loses its oldest text: no caller evicts what another one still
//! reads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_sanitize::{FamilyCounts, Raw, Sanitized, Sanitizer};
use tokio::time::Instant;

use crate::answer::Answer;
use crate::fair_store::FairStore;
use crate::random;

/// All texts together: some hundred answers of the default limit times a few, which no host notices. Set with
/// [`PagesSettings::max_bytes`]; beyond it the largest scope loses its oldest text.
pub const DEFAULT_MAX_BYTES: usize = 16 * 1024 * 1024;

/// One text: more than a model reads in pages of 64 KiB. Set with [`PagesSettings::max_text_bytes`]; a longer
/// text is stored up to there.
pub const DEFAULT_MAX_TEXT_BYTES: usize = 1024 * 1024;

/// How many texts: more than callers have open at a time. Set with [`PagesSettings::max_texts`]; beyond it
/// the scope with the most texts loses its oldest.
pub const DEFAULT_MAX_TEXTS: usize = 256;

/// How long a text is stored: long enough for a model to come back to it within one task. Set with
/// [`PagesSettings::max_age`]; after it the handle is unknown.
pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(15 * 60);

/// The smallest page: a smaller one could consist of a single long token that cannot be cut. A request for
/// less gets this.
pub const MIN_PAGE_BYTES: usize = 256;

/// The action that the notice of an excerpt names for reading the rest. The host offers it.
pub const READ_MORE: &str = "talon.read_more";

/// How often to shorten a page that its marks make too long. Each time it is shortened by the length of the
/// marks.
const MAX_TRIES: usize = 4;

/// The bounds of a [`Pages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagesSettings {
    /// Bytes of all texts together. Default [`DEFAULT_MAX_BYTES`].
    pub max_bytes: usize,
    /// Bytes of one text. Default [`DEFAULT_MAX_TEXT_BYTES`].
    pub max_text_bytes: usize,
    /// How many texts. Default [`DEFAULT_MAX_TEXTS`].
    pub max_texts: usize,
    /// How long each is stored. Default [`DEFAULT_MAX_AGE`].
    pub max_age: Duration,
}

impl Default for PagesSettings {
    fn default() -> Self {
        Self {
            max_bytes: DEFAULT_MAX_BYTES,
            max_text_bytes: DEFAULT_MAX_TEXT_BYTES,
            max_texts: DEFAULT_MAX_TEXTS,
            max_age: DEFAULT_MAX_AGE,
        }
    }
}

/// A page of a stored text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The text of the page, sanitized separately: a line that was harmless in its place can be a turn marker
    /// at the beginning of a page. It then carries a mark here, which is the only difference from the stored
    /// text.
    pub text: Sanitized,
    /// Where it begins, in bytes of the stored text. The offset asked for, or a little before it if that was
    /// inside a character.
    pub offset: usize,
    /// Where the next page begins; `None` for the last.
    pub next_offset: Option<usize>,
    /// The length of the stored text.
    pub total: usize,
    /// The plugin that wrote it, for [`Answer::written_by`](crate::Answer::written_by).
    pub plugin: String,
}

/// Why there is no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The handle is unknown, its text has expired, or it was given to another caller. The three look the
    /// same.
    #[error("there is no text for this handle; texts are kept for a while only, so make the call again")]
    Unknown,
    /// The offset is at or behind the end.
    #[error("the offset is beyond the end of the text, which has {total} bytes")]
    BeyondEnd {
        /// The length of the stored text.
        total: usize,
    },
}

impl Page {
    /// The page as an action's answer: the text, the next offset as structured content, and the plugin that
    /// wrote it.
    #[must_use]
    pub fn into_answer(self) -> Answer {
        let Self { text, offset, next_offset, total, plugin } = self;
        let next = next_offset.map_or_else(|| "null".to_owned(), |next| next.to_string());
        let where_it_is = format!("{{\"offset\": {offset}, \"next_offset\": {next}, \"total\": {total}}}");
        Answer {
            structured_content: Raw::from(where_it_is),
            written_by: Some(plugin),
            ..Answer::from_tool(text.into_string())
        }
    }
}

/// The stored texts. Clones share the store.
#[derive(Clone)]
pub struct Pages {
    store: Arc<Mutex<FairStore<StoredText>>>,
    settings: PagesSettings,
    sanitizer: Sanitizer,
}

struct StoredText {
    text: Arc<Sanitized>,
    plugin: String,
    expires: Instant,
}

/// Shows the bounds and nothing of the texts.
impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Pages {
    /// An empty store. The sanitizer must be the one that the texts went through; it decides where a page may
    /// end.
    #[must_use]
    pub fn new(settings: PagesSettings, sanitizer: Sanitizer) -> Self {
        let shelf = FairStore::new(settings.max_bytes, settings.max_texts);
        Self { store: Arc::new(Mutex::new(shelf)), settings, sanitizer }
    }

    /// The bounds.
    #[must_use]
    pub fn settings(&self) -> PagesSettings {
        self.settings
    }

    /// A page of at most `max_bytes` (and of at least [`MIN_PAGE_BYTES`], if there is so much), ending at a
    /// line end where possible. Pages that follow each other's `next_offset` leave nothing out and repeat
    /// nothing.
    ///
    /// # Errors
    ///
    /// If there is no such text for this scope, or the offset is at or behind its end.
    pub fn read(
        &self,
        scope: &str,
        handle: &str,
        offset: usize,
        max_bytes: usize,
    ) -> Result<Page, PageError> {
        let (text, plugin) = self.find(scope, handle).ok_or(PageError::Unknown)?;
        let total = text.len();
        if offset >= total {
            return Err(PageError::BeyondEnd { total });
        }
        let offset = text.floor_char_boundary(offset);
        let rest = &text[offset..];
        let (text, length) = self.page(rest, max_bytes.max(MIN_PAGE_BYTES));
        let next_offset = Some(offset + length).filter(|next| *next < total);
        Ok(Page { text, offset, next_offset, total, plugin })
    }

    /// Stores a text for a scope and returns its handle, or `None` if it is too large.
    pub(crate) fn store(&self, scope: &str, plugin: &str, text: &Sanitized) -> Option<String> {
        if text.len() > self.settings.max_text_bytes {
            return None;
        }
        let now = Instant::now();
        let handle = random::random_hex();
        let expires = now + self.settings.max_age;
        let kept = StoredText { text: Arc::new(text.clone()), plugin: plugin.to_owned(), expires };
        let mut shelf = self.store.lock();
        shelf.retain(|kept| now < kept.expires);
        shelf.insert(scope, &handle, text.len() + plugin.len(), kept).then_some(handle)
    }

    fn find(&self, scope: &str, handle: &str) -> Option<(Arc<Sanitized>, String)> {
        let shelf = self.store.lock();
        let (owner, kept) = shelf.get(handle)?;
        (owner == scope && Instant::now() < kept.expires).then(|| (kept.text.clone(), kept.plugin.clone()))
    }

    /// The page at the beginning of this text, and how much of the text it covers.
    fn page(&self, rest: &str, max_bytes: usize) -> (Sanitized, usize) {
        let mut wanted = max_bytes;
        for _ in 0..MAX_TRIES {
            let length = self.page_length(rest, wanted);
            let text = self.sanitizer.sanitize(Raw::from(&rest[..length]), &mut FamilyCounts::default());
            match text.len().checked_sub(max_bytes) {
                None | Some(0) => return (text, length),
                Some(excess) => wanted = wanted.saturating_sub(excess).max(MIN_PAGE_BYTES / 2),
            }
        }
        let length = rest.floor_char_boundary(MIN_PAGE_BYTES / 2);
        (self.sanitizer.sanitize(Raw::from(&rest[..length]), &mut FamilyCounts::default()), length)
    }

    fn page_length(&self, rest: &str, max_bytes: usize) -> usize {
        if rest.len() <= max_bytes {
            return rest.len();
        }
        let safe = self.sanitizer.safe_cut(rest, max_bytes).min(max_bytes);
        // A page that ends with a line reads better, and the next page then begins with a whole line.
        // Searched in the last quarter, so that pages stay about as large as asked for.
        let line_end = rest[..safe].rfind('\n').map(|at| at + 1).filter(|end| *end > safe - safe / 4);
        let length = line_end.map_or(safe, |end| self.sanitizer.safe_cut(rest, end).min(end));
        // No cut that fits is safe, which takes an offset that was never given out. Sanitizing the page
        // once more makes it safe, and reading on has to make progress.
        if length == 0 { rest.floor_char_boundary(max_bytes) } else { rest.floor_char_boundary(length) }
    }
}

#[cfg(test)]
mod tests;
