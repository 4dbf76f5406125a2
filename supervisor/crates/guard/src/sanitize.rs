//! Neutralizes control syntax in the text of an answer, so that it cannot pass for a tool call or close its
//! envelope.
//!
//! It works on `content`, `error` and `structured_content`, no matter who wrote them: `rescue` stands below,
//! so error texts of the host, which may quote a plugin, are sanitized too. `talon-sanitize` does the work;
//! the changes are counted by family in the [`Report`]. What a call puts out while it runs passes it, too
//! ([`call_output`](crate::call_output)).
//!
//! Structured content stays JSON of the same shape. If it does not parse (or is nested too deeply), it is
//! appended to `content` as text, after a blank line, `structured_content` is left empty, and
//! [`Report::structured_as_text`] is set.
//!
//! # The coarse cut
//!
//! Sanitizing is linear, but a plugin may send as much as the transport accepts. So each field is first cut
//! to a multiple of what the truncate layer above will keep of it; structured content that is larger is
//! replaced by a notice. The exact limit is applied later, to sanitized text, and its notice counts what was
//! cut here. The multiple leaves room for text that shrinks, such as runs of invisible characters.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_proto::plugin::{InputRequest, Media};
use talon_sanitize::{Raw, Sanitized, Sanitizer};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::Answer;
use crate::arc_by_id::ArcById;
use crate::body::Body;
use crate::call::Call;
use crate::call_output::RawOutput;
use crate::executor::Executor;
use crate::findings::Findings;
use crate::media::MAX_LABEL_BYTES;
use crate::quarantine::Quarantine;
use crate::report::Report;
use crate::sanitized_answer::{Fields, SanitizedAnswer, structured_notice};

/// The coarse limit as a multiple of the response limit. See [the coarse cut](self#the-coarse-cut).
const COARSE_FACTOR: usize = 4;

/// The smallest coarse limit, so that with a small response limit a long text that shrinks does not end
/// early. It suits limits up to 64 KiB, which is the default one.
const MIN_COARSE_BYTES: usize = 256 * 1024;

/// The one invisible character that the sanitizer leaves at the beginning of a text, where it marks the
/// encoding of a file. An answer is not a file, and inside an envelope the character would be in the middle.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Makes [`Sanitize`] services.
#[derive(Debug, Clone)]
pub struct SanitizeLayer {
    sanitizer: Sanitizer,
    coarse_bytes: usize,
    /// The same for structured content, if that may be larger.
    structured_coarse_bytes: usize,
    quarantine: Option<Quarantine>,
    executor: Executor,
}

impl SanitizeLayer {
    /// A layer whose coarse cut suits the default response limit.
    #[must_use]
    pub fn new(sanitizer: Sanitizer) -> Self {
        Self {
            sanitizer,
            coarse_bytes: MIN_COARSE_BYTES,
            structured_coarse_bytes: 0,
            quarantine: None,
            executor: Executor::default(),
        }
    }

    /// Adapts the coarse cut to another limit: the largest limit of the truncate layer.
    #[must_use]
    pub fn for_response_limit(mut self, max_response_bytes: usize) -> Self {
        self.coarse_bytes =
            self.coarse_bytes.max(max_response_bytes.saturating_mul(COARSE_FACTOR)).max(MIN_COARSE_BYTES);
        self
    }

    /// Makes the coarse cut keep at least as much as may be stored for reading on.
    #[must_use]
    pub fn for_stored_text_limit(mut self, max_text_bytes: usize) -> Self {
        self.coarse_bytes = self.coarse_bytes.max(max_text_bytes);
        self
    }

    /// Keeps structured content up to this size whole, for a truncate layer that shortens it.
    #[must_use]
    pub fn for_structured_limit(mut self, max_bytes: usize) -> Self {
        self.structured_coarse_bytes = max_bytes;
        self
    }

    /// Reports to a quarantine how much control syntax the plugin's answers hold.
    #[must_use]
    pub fn reporting_to(mut self, quarantine: Quarantine) -> Self {
        self.quarantine = Some(quarantine);
        self
    }

    /// Sets what runs the work on large answers.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }
}

impl<S> Layer<S> for SanitizeLayer {
    type Service = Sanitize<S>;
    fn layer(&self, inner: S) -> Sanitize<S> {
        Sanitize { layer: Arc::new(self.clone()), inner }
    }
}

/// Sanitizes answers: see the [module](self).
#[derive(Debug, Clone)]
pub struct Sanitize<S> {
    layer: Arc<SanitizeLayer>,
    inner: S,
}

impl<S> Service<Call> for Sanitize<S>
where
    S: Service<Call, Response = Answer>,
{
    type Response = SanitizedAnswer;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut call: Call) -> Self::Future {
        if let Some(observer) = call.output_observer.take() {
            let output = RawOutput::new(self.layer.sanitizer.clone(), observer);
            call.raw_output = Some(ArcById::new(Arc::new(output)));
        }
        let provoked = call.opaque || self.layer.arguments_hold_syntax(&call);
        let wants_originals = call.wants_originals;
        ResponseFuture { future: self.inner.call(call), layer: self.layer.clone(), provoked, wants_originals }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        layer: Arc<SanitizeLayer>,
        provoked: bool,
        wants_originals: bool,
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Answer, E>>,
{
    type Output = Result<SanitizedAnswer, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.future.poll(cx))?;
        let counts = !*this.provoked && answer.is_from_plugin();
        let bytes = answer.content.len() + answer.error.len() + answer.structured_content.len();
        let wants_originals = *this.wants_originals;
        let sanitized =
            this.layer.executor.run(bytes, || this.layer.sanitize_and_note(answer, wants_originals));
        if let (Some(quarantine), true) = (&this.layer.quarantine, counts) {
            quarantine.count(sanitized.report());
        }
        Poll::Ready(Ok(sanitized))
    }
}

impl SanitizeLayer {
    /// Whether the arguments hold control syntax themselves. A plugin that repeats them ("no such file: …")
    /// is not counted, because otherwise a caller could have it quarantined by choosing the arguments.
    fn arguments_hold_syntax(&self, call: &Call) -> bool {
        self.quarantine.as_ref().is_some_and(Quarantine::is_enabled)
            && !call.args.values().chain([&call.action]).all(|text| self.sanitizer.is_clean(text))
    }

    pub(crate) fn sanitize(&self, answer: Answer) -> SanitizedAnswer {
        self.sanitize_and_note(answer, false)
    }

    /// Sanitizes, and lists what marked pieces were before if that is wanted.
    fn sanitize_and_note(&self, answer: Answer, wants_originals: bool) -> SanitizedAnswer {
        let Answer {
            outcome,
            mut content,
            error,
            structured_content,
            media,
            input_request,
            digest,
            written_by,
        } = answer;
        let mut report = Report {
            bytes_in: content.len() + error.len() + structured_content.len(),
            digest,
            ..Report::default()
        };
        let mut found = Findings::new(wants_originals);
        let structured_content = self.structured(structured_content, &mut content, &mut found, &mut report);
        let (content, content_left) = self.text(content, &mut found);
        let (error, error_left) = self.text(error, &mut found);
        let media = media.into_iter().map(|item| self.media(item, &mut found)).collect();
        let input_request = input_request.map(|request| self.input_request(request, &mut found));
        report.bytes_left_out += content_left + error_left;
        report.bytes_out = content.len() + error.len() + structured_content.whole().len();
        found.write_to(&mut report);
        let originals = found.into_originals();
        SanitizedAnswer(Box::new(Fields {
            outcome,
            content: Body::from_plugin(content),
            error: Body::from_plugin(error),
            structured_content,
            media,
            input_request,
            report,
            originals,
            written_by,
            unreported_bytes: [content_left, error_left],
        }))
    }

    /// Runs first: structured content that does not parse is appended to the content and sanitized with it as
    /// one text, so that no syntax can be split between the two.
    fn structured(
        &self,
        json: Raw<'static>,
        content: &mut Raw<'static>,
        found: &mut Findings,
        report: &mut Report,
    ) -> Body {
        if json.is_empty() {
            return Body::default();
        }
        if json.len() > self.structured_coarse_bytes.max(self.coarse_bytes) {
            report.bytes_left_out += json.len();
            return structured_notice(json.len(), self.structured_coarse_bytes.max(self.coarse_bytes));
        }
        if let Some(inert) = found.json(&self.sanitizer, &json) {
            return Body::from_plugin(inert);
        }
        report.structured_as_text = true;
        *content = if content.is_empty() {
            json
        } else {
            Raw::from([content.expose(), "\n\n", json.expose()].concat())
        };
        Body::default()
    }

    /// Sanitizes the texts of an item.
    fn media(&self, mut item: Media, found: &mut Findings) -> Media {
        let Media { kind, mime_type, data: _, text, uri, name, title, description, size: _ } = &mut item;
        for label in [kind, mime_type, uri, name, title, description] {
            let kept = talon_sanitize::prefix(label, MAX_LABEL_BYTES);
            *label = found.text(&self.sanitizer, Raw::from(kept.to_owned())).into_string();
        }
        *text = self.text(Raw::from(std::mem::take(text)), found).0.into_string();
        item
    }

    /// Sanitizes the schema of a form. `validate` has checked that it is JSON, and its size.
    fn input_request(&self, mut request: Box<InputRequest>, found: &mut Findings) -> Box<InputRequest> {
        let schema = Raw::from(std::mem::take(&mut request.schema));
        request.schema = found.json(&self.sanitizer, &schema).unwrap_or_default().into_string();
        request
    }

    /// Sanitizes one text after the coarse cut, and returns how much the cut left out.
    fn text(&self, mut text: Raw<'static>, found: &mut Findings) -> (Sanitized, usize) {
        if text.is_empty() {
            return Default::default();
        }
        if text.expose().starts_with(BYTE_ORDER_MARK) {
            text = Raw::from(text.expose().trim_start_matches(BYTE_ORDER_MARK).to_owned());
        }
        let left_out = text.truncate(self.coarse_bytes);
        (found.text(&self.sanitizer, text), left_out)
    }
}

#[cfg(test)]
mod tests;
