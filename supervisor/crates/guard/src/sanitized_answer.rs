//! An answer whose text is sanitized.

use talon_proto::plugin::{InputRequest, Media};
use talon_sanitize::{MarkedSpans, Sanitized, Sanitizer};

use crate::answer::Outcome;
use crate::body::Body;
use crate::input_request::MAX_QUESTION_BYTES;
use crate::reason;
use crate::report::Report;

/// An answer whose text is sanitized. Only the sanitize layer and the [`Guard`](crate::Guard) make it.
///
/// ```compile_fail
/// # fn raw_answer() -> talon_guard::Answer { unimplemented!() }
/// // An answer cannot be converted to a sanitized one.
/// let forged: talon_guard::SanitizedAnswer = raw_answer().into();
/// ```
///
/// ```compile_fail
/// # fn raw() -> talon_guard::Raw<'static> { unimplemented!() }
/// // Nor does its text.
/// let forged: talon_guard::Sanitized = raw().into();
/// ```
///
/// It is on the heap, like a call, because the layers above move it.
#[derive(Debug, Clone)]
pub struct SanitizedAnswer(pub(crate) Box<Fields>);

#[derive(Debug, Clone)]
pub(crate) struct Fields {
    pub(crate) outcome: Outcome,
    pub(crate) content: Body,
    pub(crate) error: Body,
    pub(crate) structured_content: Body,
    /// Its texts are sanitized. The truncate layer drops what is not passed on.
    pub(crate) media: Vec<Media>,
    /// Its schema is sanitized.
    pub(crate) input_request: Option<Box<InputRequest>>,
    pub(crate) report: Report,
    /// What marked pieces were before, if the caller wants that. The only text here that is not sanitized.
    pub(crate) originals: Option<Box<MarkedSpans>>,
    pub(crate) written_by: Option<String>,
    /// Bytes that the coarse cut removed from content and error, for which there is no notice yet.
    pub(crate) unreported_bytes: [usize; 2],
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
    #[inline]
    pub fn outcome(&self) -> &Outcome {
        &self.0.outcome
    }
    /// The sanitized text.
    #[must_use]
    #[inline]
    pub fn content(&self) -> &Sanitized {
        self.0.content.whole()
    }
    /// The sanitized error text; empty if there is no error.
    #[must_use]
    #[inline]
    pub fn error(&self) -> &Sanitized {
        self.0.error.whole()
    }
    /// The sanitized JSON text, or empty.
    #[must_use]
    #[inline]
    pub fn structured_content(&self) -> &Sanitized {
        self.0.structured_content.whole()
    }
    /// What the guard did so far.
    #[must_use]
    #[inline]
    pub fn report(&self) -> &Report {
        &self.0.report
    }

    #[inline]
    pub(crate) fn field(&self, field: Field) -> &Body {
        match field {
            Field::Content => &self.0.content,
            Field::Error => &self.0.error,
        }
    }

    #[inline]
    pub(crate) fn unreported_bytes(&self, field: Field) -> usize {
        self.0.unreported_bytes[field as usize]
    }

    /// Replaces a field by a text with notices. `left_out` is what the notices report beyond the coarse cut,
    /// which is counted already.
    pub(crate) fn replace(&mut self, field: Field, with: Body, left_out: usize) {
        let Fields { content, error, report, unreported_bytes: unannounced, .. } = &mut *self.0;
        let body = match field {
            Field::Content => content,
            Field::Error => error,
        };
        report.bytes_left_out += left_out;
        report.bytes_out = report.bytes_out - body.whole().len() + with.whole().len();
        *body = with;
        unannounced[field as usize] = 0;
    }

    /// Refuses a question to the caller's user that is larger than `limit`: cut, it may lack what matters.
    pub(crate) fn refuse_question(&mut self, limit: usize) {
        let bytes = self.content().len() + self.unreported_bytes(Field::Content);
        let text = format!(
            "the plugin asks its user something in {bytes} bytes, which is more than this plugin's max_response_bytes ({limit}); a \
             question is not cut: it was not asked. {MAX_QUESTION_BYTES} are enough for every question"
        );
        let whole = self.content().len();
        self.replace(Field::Content, Body::default(), whole);
        let error = Sanitizer::default().sanitize(text, &mut Default::default());
        self.replace(Field::Error, Body::from_notice(error), 0);
        self.0.input_request = None;
        self.0.outcome = Outcome::Refused { reason: reason::TOO_LARGE, retryable: false };
    }

    /// Adds a notice of the host behind the content.
    pub(crate) fn add_notice(&mut self, notice: String) {
        let Fields { content, report, .. } = &mut *self.0;
        let before = content.whole().len();
        *content = std::mem::take(content).with_notice(notice);
        report.bytes_out = report.bytes_out - before + content.whole().len();
    }

    /// Replaces the structured content by a shorter form of it.
    pub(crate) fn shorten_structured(&mut self, short: Sanitized) {
        let old = self.structured_content().len();
        let report = &mut self.0.report;
        report.bytes_left_out += old.saturating_sub(short.len());
        report.bytes_out = report.bytes_out - old + short.len();
        self.0.structured_content = Body::from_plugin(short);
    }

    /// Replaces the structured content, which is larger than `limit`, by a notice.
    pub(crate) fn replace_structured(&mut self, limit: usize) {
        let old = self.structured_content().len();
        let notice = structured_notice(old, limit);
        self.0.report.bytes_left_out += old;
        self.0.report.bytes_out = self.0.report.bytes_out - old + notice.whole().len();
        self.0.structured_content = notice;
    }
}

/// The notice in place of structured content that is too large: valid JSON.
pub(crate) fn structured_notice(bytes: usize, limit: usize) -> Body {
    let notice = format!(
        "\"truncated: structured content of {bytes} bytes exceeded the limit of {limit} and was left out\""
    );
    // Without an operator's patterns, which do not apply to the host's notices.
    Body::from_notice(Sanitizer::default().sanitize(notice, &mut Default::default()))
}
