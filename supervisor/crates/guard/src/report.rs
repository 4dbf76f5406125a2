//! What the guard has to tell about an answer, beside the answer.

use std::collections::BTreeMap;

use talon_sanitize::{Flags, Tally};

use crate::digest::Digest;

/// What the guard did to one answer, and what it noticed.
///
/// Everything in it is a number, a word of the guard's own, or the name of a plugin: it holds no text of a plugin and
/// may be shown, logged and counted as it is.
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
    /// How often control syntax of each family was made inert.
    pub neutralised: BTreeMap<&'static str, u32>,
    /// The same in more detail: by family and kind.
    pub kinds: BTreeMap<(&'static str, &'static str), u32>,
    /// What was noticed and left as it is, such as `base64`. Sorted, each once.
    pub flags: Vec<&'static str>,
    /// The digest of the message as it came; none for an answer that the host made up, such as a refusal.
    pub digest: Option<Digest>,
    /// The plugins whose recent answers the call's arguments carry a piece of. Sorted, each once.
    pub tainted_by: Vec<String>,
    /// The handle under which the whole text is kept for reading on, if it is.
    pub page: Option<String>,
}

impl Report {
    /// Whether a size limit left something out.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.bytes_left_out > 0
    }

    /// Whether anything was made inert.
    #[must_use]
    pub fn neutralised_any(&self) -> bool {
        !self.neutralised.is_empty()
    }

    /// Takes over what was counted and noticed.
    pub(crate) fn note(&mut self, tally: &Tally, flags: Flags) {
        self.kinds.clear();
        self.neutralised.clear();
        // The rule, and the only case in which nothing here takes memory.
        if *tally == Tally::default() && flags.is_empty() {
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
