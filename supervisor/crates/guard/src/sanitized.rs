//! An answer whose text is inert.

use talon_sanitize::{Sanitized, Sanitizer};

use crate::answer::Outcome;
use crate::body::Body;
use crate::report::Report;

/// An answer whose text is inert: made by the sanitize layer and the façade alone.
///
/// ```compile_fail
/// # fn raw_answer() -> talon_guard::Answer { unimplemented!() }
/// // An answer does not become a sanitized one by itself.
/// let forged: talon_guard::SanitizedAnswer = raw_answer().into();
/// ```
///
/// ```compile_fail
/// # fn raw() -> talon_guard::Raw<'static> { unimplemented!() }
/// // Nor does its text.
/// let forged: talon_guard::Sanitized = raw().into();
/// ```
///
/// Like a call it is on the heap, because the layers above hand it on.
#[derive(Debug, Clone)]
pub struct SanitizedAnswer(pub(crate) Box<Fields>);

#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) outcome: Outcome,
    pub(crate) content: Body,
    pub(crate) error: Body,
    pub(crate) structured_content: Body,
    pub(crate) report: Report,
    pub(crate) written_by: Option<String>,
    /// Bytes that the coarse cut took from content and error, for which there is no notice yet.
    pub(crate) unannounced: [usize; 2],
}

/// A text field that may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Content,
    Error,
}

impl SanitizedAnswer {
    /// How the call ended.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.0.outcome
    }
    /// The inert text.
    #[must_use]
    pub fn content(&self) -> &Sanitized {
        self.0.content.whole()
    }
    /// The inert error text; empty when nobody said no.
    #[must_use]
    pub fn error(&self) -> &Sanitized {
        self.0.error.whole()
    }
    /// The inert JSON text, or empty.
    #[must_use]
    pub fn structured_content(&self) -> &Sanitized {
        self.0.structured_content.whole()
    }
    /// What the guard did so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.0.report
    }

    pub(crate) fn field(&self, field: Field) -> &Body {
        match field {
            Field::Content => &self.0.content,
            Field::Error => &self.0.error,
        }
    }

    pub(crate) fn unannounced(&self, field: Field) -> usize {
        self.0.unannounced[field as usize]
    }

    /// Puts a text with notices in the place of one without. `left_out` is what the notices tell of beyond what the
    /// coarse cut has already been counted for.
    pub(crate) fn replace(&mut self, field: Field, with: Body, left_out: usize) {
        let Fields { content, error, report, unannounced, .. } = &mut *self.0;
        let body = match field {
            Field::Content => content,
            Field::Error => error,
        };
        report.bytes_left_out += left_out;
        report.bytes_out = report.bytes_out - body.whole().len() + with.whole().len();
        *body = with;
        unannounced[field as usize] = 0;
    }

    /// Leaves a notice in place of the structured content, which is larger than `limit`.
    pub(crate) fn replace_structured(&mut self, limit: usize) {
        let old = self.structured_content().len();
        let notice = structured_notice(old, limit);
        self.0.report.bytes_left_out += old;
        self.0.report.bytes_out = self.0.report.bytes_out - old + notice.whole().len();
        self.0.structured_content = notice;
    }
}

/// What stands in the place of structured content that is too large: JSON, but nothing like the content.
pub(crate) fn structured_notice(bytes: usize, limit: usize) -> Body {
    let notice = format!(
        "\"truncated: structured content of {bytes} bytes exceeded the limit of {limit} and was left out\""
    );
    // Without an operator's patterns, which are not meant for our own words.
    Body::ours(Sanitizer::default().sanitize(notice, &mut Default::default()))
}
