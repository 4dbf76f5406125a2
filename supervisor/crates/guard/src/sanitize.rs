//! Makes the text of an answer inert, so that it cannot pass for a tool call or close its envelope.
//!
//! It works on `content`, `error` and `structured_content`, whoever wrote them: `rescue` stands below, so error
//! texts of the host, which may quote a plugin, take the same way. How text is made inert is the business of
//! `talon-sanitize`; what was done is counted by family in the [`Report`].
//!
//! Structured content stays JSON of the same shape. If it does not parse (or is nested too deeply), it is no
//! structured content: it is appended to `content` as text, after a blank line, `structured_content` is left
//! empty, and [`Report::structured_as_text`] says so.
//!
//! # The coarse cut
//!
//! Sanitizing is linear, but a plugin may send as much as the transport takes. So each field is first cut to a
//! multiple of what the truncate layer above will leave of it; structured content that is larger is replaced by
//! a notice. The exact limit comes after, on sanitized text, and its notice counts what was cut here. The
//! multiple leaves room for text that shrinks, such as runs of invisible characters.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_sanitize::{Sanitizer, Tally};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{Answer, Outcome, Report};
use crate::call::Call;
use crate::text::prefix;

/// How many times the response limit is looked at. See [the coarse cut](self#the-coarse-cut).
const COARSE_FACTOR: usize = 4;

/// The least that is looked at, so that a small response limit does not make a long but shrinking text end early.
/// It suits limits up to 64 KiB, which is the default one.
const MIN_COARSE_BYTES: usize = 256 * 1024;

/// An answer whose text is inert: made by the sanitize layer alone.
///
/// ```compile_fail
/// # fn report() -> talon_guard::Report { unimplemented!() }
/// let forged = talon_guard::Sanitized {
///     answer: talon_guard::Answer {
///         outcome: talon_guard::Outcome::Ok,
///         content: "[tool_call]".to_owned(),
///         error: String::new(),
///         structured_content: String::new(),
///     },
///     report: report(),
/// };
/// ```
#[derive(Debug, Clone)]
pub struct Sanitized {
    answer: Answer,
    report: Report,
    /// Bytes that the coarse cut took from content and error, for which there is no notice yet.
    unannounced: [usize; 2],
    /// Whether a notice stands in the place of the structured content.
    structured_replaced: bool,
}

/// A text field that may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Content,
    Error,
}

impl Sanitized {
    /// How the call ended.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.answer.outcome
    }
    /// The inert text.
    #[must_use]
    pub fn content(&self) -> &str {
        &self.answer.content
    }
    /// The inert error text; empty when nobody said no.
    #[must_use]
    pub fn error(&self) -> &str {
        &self.answer.error
    }
    /// The inert JSON text, or empty.
    #[must_use]
    pub fn structured_content(&self) -> &str {
        &self.answer.structured_content
    }
    /// What the guard did so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    pub(crate) fn into_parts(self) -> (Answer, Report) {
        (self.answer, self.report)
    }

    pub(crate) fn field(&self, field: Field) -> &str {
        match field {
            Field::Content => &self.answer.content,
            Field::Error => &self.answer.error,
        }
    }

    pub(crate) fn unannounced(&self, field: Field) -> usize {
        self.unannounced[field as usize]
    }

    /// Keeps the first `keep` bytes of a text and puts a fixed notice after them. Together with
    /// [`Self::replace_structured`] the only change to sanitized text there is, and it adds no text of a plugin.
    pub(crate) fn shorten(&mut self, field: Field, keep: usize, notice: &str) {
        let text = match field {
            Field::Content => &mut self.answer.content,
            Field::Error => &mut self.answer.error,
        };
        self.report.bytes_left_out += text.len() - keep;
        self.report.bytes_out = self.report.bytes_out - (text.len() - keep) + notice.len();
        text.truncate(keep);
        text.push_str(notice);
        self.unannounced[field as usize] = 0;
    }

    /// Leaves a notice in place of the structured content, which is larger than `limit`.
    pub(crate) fn replace_structured(&mut self, limit: usize) {
        let old = self.answer.structured_content.len();
        let notice = structured_notice(old, limit);
        self.report.bytes_left_out += old;
        self.report.bytes_out = self.report.bytes_out - old + notice.len();
        self.answer.structured_content = notice;
        self.structured_replaced = true;
    }

    pub(crate) fn is_structured_replaced(&self) -> bool {
        self.structured_replaced
    }
}

/// What stands in the place of structured content that is too large: JSON, but nothing like the content.
fn structured_notice(bytes: usize, limit: usize) -> String {
    format!(
        "\"truncated: structured content of {bytes} bytes exceeded the limit of {limit} and was left out\""
    )
}

/// Makes [`Sanitize`] services.
#[derive(Debug, Clone)]
pub struct SanitizeLayer {
    sanitizer: Sanitizer,
    coarse_bytes: usize,
}

impl SanitizeLayer {
    /// A layer whose coarse cut suits the default response limit.
    #[must_use]
    pub fn new(sanitizer: Sanitizer) -> Self {
        Self { sanitizer, coarse_bytes: MIN_COARSE_BYTES }
    }

    /// Makes the coarse cut suit another limit: the largest of those that the truncate layer has.
    #[must_use]
    pub fn for_response_limit(mut self, max_response_bytes: usize) -> Self {
        self.coarse_bytes = max_response_bytes.saturating_mul(COARSE_FACTOR).max(MIN_COARSE_BYTES);
        self
    }
}

impl<S> Layer<S> for SanitizeLayer {
    type Service = Sanitize<S>;
    fn layer(&self, inner: S) -> Sanitize<S> {
        Sanitize { layer: self.clone(), inner }
    }
}

/// Makes text inert: see the [module](self).
#[derive(Debug, Clone)]
pub struct Sanitize<S> {
    layer: SanitizeLayer,
    inner: S,
}

impl<S> Service<Call> for Sanitize<S>
where
    S: Service<Call, Response = Answer>,
{
    type Response = Sanitized;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: Call) -> Self::Future {
        ResponseFuture { future: self.inner.call(call), layer: self.layer.clone() }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        layer: SanitizeLayer,
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Answer, E>>,
{
    type Output = Result<Sanitized, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.future.poll(cx))?;
        Poll::Ready(Ok(this.layer.sanitize(answer)))
    }
}

impl SanitizeLayer {
    fn sanitize(&self, mut answer: Answer) -> Sanitized {
        let mut tally = Tally::default();
        let mut report = Report {
            bytes_in: answer.content.len() + answer.error.len() + answer.structured_content.len(),
            ..Report::default()
        };
        let structured_replaced = self.structured(&mut answer, &mut tally, &mut report);
        let unannounced =
            [self.text(&mut answer.content, &mut tally), self.text(&mut answer.error, &mut tally)];
        report.bytes_left_out += unannounced.iter().sum::<usize>();
        report.bytes_out = answer.content.len() + answer.error.len() + answer.structured_content.len();
        report.neutralised = tally.families().collect();
        Sanitized { answer, report, unannounced, structured_replaced }
    }

    /// Goes first: what does not parse joins the content, and is sanitized with it as one text, so that nothing
    /// can be split between the two. Says whether a notice took its place.
    fn structured(&self, answer: &mut Answer, tally: &mut Tally, report: &mut Report) -> bool {
        let json = std::mem::take(&mut answer.structured_content);
        if json.is_empty() {
            return false;
        }
        if json.len() > self.coarse_bytes {
            report.bytes_left_out += json.len();
            answer.structured_content = structured_notice(json.len(), self.coarse_bytes);
            return true;
        }
        // Counted apart, so that what was seen of JSON that then turned out to be none is not counted twice.
        let mut seen = Tally::default();
        let inert = self.sanitizer.json(&json, &mut seen).map(owned_if_changed);
        match inert {
            Some(changed) => {
                tally.merge(&seen);
                answer.structured_content = changed.unwrap_or(json);
            }
            None => {
                report.structured_as_text = true;
                if !answer.content.is_empty() {
                    answer.content.push_str("\n\n");
                }
                answer.content.push_str(&json);
            }
        }
        false
    }

    /// Makes one text inert, after the coarse cut, and says how much that left out.
    fn text(&self, text: &mut String, tally: &mut Tally) -> usize {
        let keep = prefix(text, self.coarse_bytes).len();
        let left_out = text.len() - keep;
        text.truncate(keep);
        if let Some(inert) = owned_if_changed(self.sanitizer.text(text, tally)) {
            *text = inert;
        }
        left_out
    }
}

/// Clean text comes back borrowed and needs no copy.
fn owned_if_changed(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Borrowed(_) => None,
        Cow::Owned(changed) => Some(changed),
    }
}

#[cfg(test)]
mod tests;
