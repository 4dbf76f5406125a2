//! Limits the size of what a model gets.
//!
//! It stands above sanitize, so that the limit applies exactly to the text that goes out: content and error
//! are each cut to `max_response_bytes`, between two characters and never through a mark or a token, and a
//! notice after the cut says how much was left out. Only the notice goes beyond the limit.
//!
//! The host chooses what an answer over the limit looks like ([`Oversize`]): its beginning, or beginning and
//! end with the notice between them, and then also stored for reading on ([`Pages`]). An error is always cut:
//! its beginning says what is wrong.
//!
//! A question to the caller's user over the limit is refused, and never cut.
//!
//! Structured content is never cut, because a part of it is not valid JSON: if it is over the limit, a JSON
//! string that says so replaces it. A program that expects an object notices that at once.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_sanitize::{FamilyCounts, Raw, Sanitized, Sanitizer};
use tower_layer::Layer;
use tower_service::Service;

use crate::body::{Body, Part};
use crate::call::Call;
use crate::executor::Executor;
use crate::media::MediaPolicy;
use crate::pages::{Pages, READ_MORE};
use crate::sanitized_answer::{Field, SanitizedAnswer};
use talon_sanitize::prefix;

mod excerpt;
mod shorten;

/// The default limit of content and of an error: 64 KiB as in the founding design, some 16 thousand tokens.
/// Set with [`TruncateLayer::new`].
pub const DEFAULT_MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The limit of the structured answer of an action that plays a role, unless the plugin's own limit is higher: 1 MiB. A
/// service reads it and no model, and the largest message of a person fits four times.
pub const MAX_ROLE_STRUCTURED_BYTES: usize = 1024 * 1024;

/// What happens to content that is over the limit.
#[derive(Debug, Clone, Default)]
pub enum Oversize {
    /// Its beginning is shown.
    #[default]
    Cut,
    /// Its beginning and its end are shown, three to one: tools tend to sum up at the end.
    Excerpt,
    /// The same, and all of it is stored here; the notice says how to read on.
    Paged(Pages),
}

/// Makes [`Truncate`] services.
#[derive(Debug, Clone)]
pub struct TruncateLayer {
    max_response_bytes: usize,
    max_structured_bytes: usize,
    shortens_structured: bool,
    oversize: Oversize,
    media: MediaPolicy,
    sanitizer: Sanitizer,
    executor: Executor,
}

impl TruncateLayer {
    /// A layer with this limit for each field. The sanitizer finds cuts that leave no half token.
    /// 0 leaves nothing but the notice; there is no "unlimited".
    #[must_use]
    pub fn new(max_response_bytes: usize, sanitizer: Sanitizer) -> Self {
        Self {
            max_response_bytes,
            max_structured_bytes: max_response_bytes,
            shortens_structured: false,
            oversize: Oversize::default(),
            media: MediaPolicy::default(),
            sanitizer,
            executor: Executor::default(),
        }
    }

    /// Sets another limit for structured content than for text.
    #[must_use]
    pub fn max_structured_bytes(mut self, bytes: usize) -> Self {
        self.max_structured_bytes = bytes;
        self
    }

    /// Shortens structured content that is over its limit, instead of leaving it out: long texts and lists in
    /// it are cut, and a notice in the content says so. What does not fit even so is left out.
    #[must_use]
    pub fn shortens_structured(mut self, shortens: bool) -> Self {
        self.shortens_structured = shortens;
        self
    }

    /// Sets what is passed on of media. Default nothing.
    #[must_use]
    pub fn media(mut self, policy: MediaPolicy) -> Self {
        self.media = policy;
        self
    }

    /// Sets what happens to content that is over the limit.
    #[must_use]
    pub fn oversize(mut self, oversize: Oversize) -> Self {
        self.oversize = oversize;
        self
    }

    /// Sets what runs the work on large answers.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// Limits the size of an answer of this plugin to a call from this scope.
    pub(crate) fn apply(&self, answer: &mut SanitizedAnswer, scope: &str, plugin: &str, wants_media: bool) {
        self.apply_with(answer, scope, plugin, wants_media, self.max_structured_bytes);
    }

    /// The same with another limit for structured content.
    fn apply_with(
        &self,
        answer: &mut SanitizedAnswer,
        scope: &str,
        plugin: &str,
        wants_media: bool,
        max_structured_bytes: usize,
    ) {
        let is_over =
            answer.content().len() > self.max_response_bytes || answer.unreported_bytes(Field::Content) > 0;
        if answer.0.input_request.is_some() && is_over {
            return answer.refuse_question(self.max_response_bytes);
        }
        match &self.oversize {
            Oversize::Cut => self.cut(answer, Field::Content),
            Oversize::Excerpt => self.excerpt(answer, None),
            Oversize::Paged(pages) => self.excerpt(answer, Some((pages, scope, plugin))),
        }
        self.cut(answer, Field::Error);
        self.limit_structured(answer, scope, plugin, max_structured_bytes);
        if !answer.0.media.is_empty() {
            let (kept, notice) = self.media.admit(std::mem::take(&mut answer.0.media), wants_media, plugin);
            answer.0.media = kept;
            if let Some(notice) = notice {
                answer.add_notice(notice);
            }
        }
    }

    fn limit_structured(&self, answer: &mut SanitizedAnswer, scope: &str, plugin: &str, limit: usize) {
        let structured = &answer.0.structured_content;
        let whole = structured.whole();
        if whole.len() <= limit || structured.is_cut() {
            return;
        }
        let short =
            if self.shortens_structured { shorten::shorten(whole, limit, &self.sanitizer) } else { None };
        let Some(short) = short else { return answer.replace_structured(limit) };
        let handle = match &self.oversize {
            Oversize::Paged(pages) => {
                pages.store(scope, answer.0.written_by.as_deref().unwrap_or(plugin), whole)
            }
            Oversize::Cut | Oversize::Excerpt => None,
        };
        let more = match &handle {
            Some(handle) => format!("; {READ_MORE} handle={handle} offset=0 reads all of it"),
            None => String::new(),
        };
        let (before, after) = (whole.len(), short.len());
        answer.shorten_structured(short);
        answer.add_notice(format!(
            "[truncated: structured content of {before} bytes was shortened to {after}: long texts and lists in it are \
             cut{more}]"
        ));
        if answer.0.report.page.is_none() {
            answer.0.report.page = handle;
        }
    }

    /// Cuts a field, unless it has a notice already.
    fn cut(&self, answer: &mut SanitizedAnswer, field: Field) {
        let (body, unannounced) = (answer.field(field), answer.unreported_bytes(field));
        let text = body.whole();
        if body.is_cut() || (text.len() <= self.max_response_bytes && unannounced == 0) {
            return;
        }
        let head = self.head(text, self.max_response_bytes);
        let left_out = text.len() - head.len();
        let parts = vec![Part::Text(head), Part::Notice(notice(left_out + unannounced, ""))];
        answer.replace(field, Body::from_parts(parts), left_out);
    }

    /// The beginning of a sanitized text.
    fn head(&self, text: &Sanitized, max_bytes: usize) -> Sanitized {
        // The sanitizer finds a safe cut, but it must not exceed the limit or split a character.
        let keep = prefix(text, self.sanitizer.safe_cut(text, max_bytes).min(max_bytes));
        // Unchanged by construction; this only gives it the type.
        self.sanitizer.sanitize(Raw::from(keep), &mut FamilyCounts::default())
    }
}

/// The host's notice in place of what was left out. `more` says how to get the rest.
fn notice(left_out: usize, more: &str) -> String {
    format!("[truncated: response exceeded size limit, {left_out} bytes left out{more}]")
}

impl<S> Layer<S> for TruncateLayer {
    type Service = Truncate<S>;
    fn layer(&self, inner: S) -> Truncate<S> {
        Truncate { limits: Arc::new(self.clone()), inner }
    }
}

/// Limits sizes: see the [module](self).
#[derive(Debug, Clone)]
pub struct Truncate<S> {
    limits: Arc<TruncateLayer>,
    inner: S,
}

impl<S> Service<Call> for Truncate<S>
where
    S: Service<Call, Response = SanitizedAnswer>,
{
    type Response = SanitizedAnswer;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, call: Call) -> Self::Future {
        let wants_media = call.wants_media;
        let own = self.limits.max_structured_bytes;
        let max_structured_bytes = if call.role.is_some() { own.max(MAX_ROLE_STRUCTURED_BYTES) } else { own };
        let keeper = match self.limits.oversize {
            Oversize::Cut | Oversize::Excerpt if !wants_media => None,
            _ => Some((call.scope.clone(), call.plugin.clone())),
        };
        let (future, limits) = (self.inner.call(call), self.limits.clone());
        ResponseFuture { future, limits, keeper, wants_media, max_structured_bytes }
    }
}

pin_project! {
    /// The answer to one call.
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        limits: Arc<TruncateLayer>,
        // Scope and plugin, if the text may be stored for reading on, or the plugin named in a notice.
        keeper: Option<(Arc<str>, Arc<str>)>,
        wants_media: bool,
        max_structured_bytes: usize,
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<SanitizedAnswer, E>>,
{
    type Output = Result<SanitizedAnswer, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.future.poll(cx))?;
        let (scope, plugin) = this.keeper.as_ref().map_or(("", ""), |(scope, plugin)| (&**scope, &**plugin));
        let limits = this.limits;
        let (wants_media, structured) = (*this.wants_media, *this.max_structured_bytes);
        let bytes = answer.report().bytes_out;
        limits.executor.run(bytes, || limits.apply_with(&mut answer, scope, plugin, wants_media, structured));
        Poll::Ready(Ok(answer))
    }
}

#[cfg(test)]
mod tests;
