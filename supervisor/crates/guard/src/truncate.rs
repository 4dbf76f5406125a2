//! Limits the size of what a model gets.
//!
//! It stands above sanitize, so that the limit holds for the text that goes out, exactly: content and error are
//! each cut to `max_response_bytes`, between two characters and never through a mark or a token, and a notice
//! after the cut says how much was left out. Only the notice goes beyond the limit.
//!
//! Structured content is never cut, because half of it is no JSON: what is over the limit is replaced by a JSON
//! string that says so. A program that expects an object sees at once that this is none.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_sanitize::Sanitizer;
use tower_layer::Layer;
use tower_service::Service;

use crate::call::Call;
use crate::sanitize::{Field, Sanitized};
use crate::text::prefix;

/// The most of content and of an error that goes out: 64 KiB, the founding default, some 16 thousand tokens. Set
/// with [`TruncateLayer::new`].
pub const DEFAULT_MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Makes [`Truncate`] services.
#[derive(Debug, Clone)]
pub struct TruncateLayer {
    max_response_bytes: usize,
    max_structured_bytes: usize,
    sanitizer: Sanitizer,
}

impl TruncateLayer {
    /// A layer with this limit for each field, which the sanitizer helps to keep without leaving half a token.
    /// 0 leaves nothing but the notice; there is no "unlimited".
    #[must_use]
    pub fn new(max_response_bytes: usize, sanitizer: Sanitizer) -> Self {
        Self { max_response_bytes, max_structured_bytes: max_response_bytes, sanitizer }
    }

    /// Another limit for structured content than for text.
    #[must_use]
    pub fn max_structured_bytes(mut self, bytes: usize) -> Self {
        self.max_structured_bytes = bytes;
        self
    }

    fn apply(&self, answer: &mut Sanitized) {
        self.cut(answer, Field::Content);
        self.cut(answer, Field::Error);
        let structured = answer.structured_content().len();
        if structured > self.max_structured_bytes && !answer.is_structured_replaced() {
            answer.replace_structured(self.max_structured_bytes);
        }
    }

    fn cut(&self, answer: &mut Sanitized, field: Field) {
        let text = answer.field(field);
        let keep = if text.len() > self.max_response_bytes {
            // The sanitizer knows better where, but never gets to exceed the limit or to split a character.
            prefix(text, self.sanitizer.safe_cut(text, self.max_response_bytes).min(self.max_response_bytes))
                .len()
        } else {
            text.len()
        };
        let left_out = text.len() - keep + answer.unannounced(field);
        if left_out > 0 {
            let notice = format!("\n[truncated: response exceeded size limit, {left_out} bytes left out]");
            answer.shorten(field, keep, &notice);
        }
    }
}

impl<S> Layer<S> for TruncateLayer {
    type Service = Truncate<S>;
    fn layer(&self, inner: S) -> Truncate<S> {
        Truncate { layer: self.clone(), inner }
    }
}

/// Limits sizes: see the [module](self).
#[derive(Debug, Clone)]
pub struct Truncate<S> {
    layer: TruncateLayer,
    inner: S,
}

impl<S> Service<Call> for Truncate<S>
where
    S: Service<Call, Response = Sanitized>,
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
        layer: TruncateLayer,
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Sanitized, E>>,
{
    type Output = Result<Sanitized, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.future.poll(cx))?;
        this.layer.apply(&mut answer);
        Poll::Ready(Ok(answer))
    }
}

#[cfg(test)]
mod tests;
