//! What the sanitizer found in the texts of one answer.

use talon_sanitize::{FamilyCounts, Flags, MarkedSpans, Raw, Sanitized, Sanitizer};

use crate::report::Report;

/// The counts and flags of the sanitized texts. The only place where the guard calls the sanitizer.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    tally: FamilyCounts,
    flags: Flags,
    /// What marked pieces were before, if that is wanted.
    originals: Option<Box<MarkedSpans>>,
}

impl Findings {
    /// Nothing so far; with what marked pieces were before, if that is wanted.
    pub(crate) fn new(wants_originals: bool) -> Self {
        Self { originals: wants_originals.then(Box::default), ..Self::default() }
    }

    pub(crate) fn text(&mut self, sanitizer: &Sanitizer, raw: Raw<'_>) -> Sanitized {
        self.flags.merge(sanitizer.flags(raw.expose()));
        let Some(originals) = &mut self.originals else { return sanitizer.sanitize(raw, &mut self.tally) };
        let original = raw.expose().to_owned();
        let sanitized = sanitizer.sanitize(raw, &mut self.tally);
        originals.add_text(&original, &sanitized);
        sanitized
    }

    /// `None` if it is not valid JSON within the limits. Then nothing is counted here, because it is counted
    /// as text.
    pub(crate) fn json(&mut self, sanitizer: &Sanitizer, raw: &Raw<'_>) -> Option<Sanitized> {
        let mut seen = FamilyCounts::default();
        let inert = sanitizer.sanitize_json(raw.expose(), &mut seen)?;
        self.tally.merge(&seen);
        self.flags.merge(sanitizer.flags(raw.expose()));
        if let Some(originals) = &mut self.originals {
            originals.add_json(raw.expose(), &inert);
        }
        Some(inert)
    }

    /// What marked pieces were before; `None` if nothing was marked, or it was not wanted.
    pub(crate) fn into_originals(self) -> Option<Box<MarkedSpans>> {
        self.originals.filter(|originals| !originals.is_empty() || originals.left_out() > 0)
    }

    pub(crate) fn write_to(&self, report: &mut Report) {
        report.record(&self.tally, self.flags);
    }
}
