//! The report on an answer: what the guard did to it.

use std::collections::BTreeMap;

use talon_sanitize::{FamilyCounts, Flags};

use crate::digest::Digest;

/// What the guard did to one answer, and what it noticed.
///
/// It holds only numbers, constants of the guard and names of plugins: no text of a plugin, so it may be
/// shown, logged and counted without further checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Bytes of text that reached the sanitizer, over all fields.
    pub bytes_in: usize,
    /// Bytes of text that came out, over all fields, notices included, without the envelope.
    pub bytes_out: usize,
    /// Bytes that a size limit left out, over all fields.
    pub bytes_left_out: usize,
    /// Whether structured content did not parse and was moved into `content` as text.
    pub structured_as_text: bool,
    /// How often control syntax of each family was neutralized.
    pub neutralised: BTreeMap<&'static str, u32>,
    /// The same in more detail: by family and kind.
    pub kinds: BTreeMap<(&'static str, &'static str), u32>,
    /// What was noticed and left unchanged, such as `base64`. Sorted, each once.
    pub flags: Vec<&'static str>,
    /// The digest of the message as it came; `None` for an answer that the host made, such as a refusal.
    pub digest: Option<Digest>,
    /// The plugins whose recent answers share text with the call's arguments. Sorted, each once.
    pub tainted_by: Vec<String>,
    /// The handle under which the whole text is stored for reading on, if it is.
    pub page: Option<String>,
}

impl Report {
    /// Whether a size limit left something out.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.bytes_left_out > 0
    }

    /// Whether anything was neutralized.
    #[must_use]
    pub fn neutralised_any(&self) -> bool {
        !self.neutralised.is_empty()
    }

    /// Records the counts and flags of the sanitizer.
    pub(crate) fn record(&mut self, tally: &FamilyCounts, flags: Flags) {
        self.kinds.clear();
        self.neutralised.clear();
        // The usual case, and the only one that allocates nothing here.
        if *tally == FamilyCounts::default() && flags.is_empty() {
            self.flags.clear();
            return;
        }
        self.neutralised.extend(tally.families());
        for (family, kind, count) in tally.kinds() {
            *self.kinds.entry((family, kind)).or_default() += count;
        }
        self.flags = flags.names().collect();
        self.flags.sort_unstable();
    }
}
