//! Puts the answer into its envelope for the model.
//!
//! It is the last change to the text; only taint and trace stand further out, and they leave the block
//! unchanged. The mode `plain` is the format of the founding design; [`EnvelopeMode`] has two stronger ones.
//!
//! ```text
//! [plugin_output]          [plugin_output]          [plugin_output]
//! <content>                error: <error>           <content>
//! [/plugin_output]         [/plugin_output]
//!                                                   [structured]
//!                                                   <json>
//!                                                   [/structured]
//!                                                   [/plugin_output]
//! ```
//!
//! An error takes precedence: the block then holds nothing else, and programs get content and structured
//! content as fields of [`Guarded`]. Without content the structured block stands alone. The text inside
//! cannot close the envelope, because only sanitized text gets here:
//!
//! ```compile_fail
//! # fn sanitized() -> talon_guard::SanitizedAnswer { unimplemented!() }
//! // Nothing outside this layer can make a guarded answer.
//! let forged: talon_guard::Guarded = sanitized().into();
//! ```
//!
//! A host shows only what came through here:
//!
//! ```compile_fail
//! fn prompt(block: &talon_guard::Wrapped) {}
//! # fn guarded() -> talon_guard::Guarded { unimplemented!() }
//! // The text of a field is sanitized, but not in an envelope.
//! prompt(guarded().content());
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_proto::plugin::{InputRequest, Media};
use talon_sanitize::{MarkedSpans, Sanitized};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::Outcome;
use crate::body::{Body, PartRef};
use crate::call::Call;
use crate::envelope::{self, EnvelopeMode, Subject, Wrapped};
use crate::executor::Executor;
use crate::report::Report;
use crate::sanitized_answer::{Fields, SanitizedAnswer};

/// A wrapped answer, ready for a model. Only the wrap layer and the [`Guard`](crate::Guard) make it.
#[derive(Debug, Clone)]
pub struct Guarded {
    block: Wrapped,
    inner: SanitizedAnswer,
}

impl Guarded {
    pub(crate) fn new(mode: EnvelopeMode, subject: Subject<'_>, inner: SanitizedAnswer) -> Self {
        let plugin = inner.0.written_by.as_deref().unwrap_or(subject.plugin);
        Self { block: envelope::wrap(mode, Subject { plugin, ..subject }, &inner), inner }
    }

    /// The answer as a model gets it: `[plugin_output]` … `[/plugin_output]`.
    #[must_use]
    pub fn block(&self) -> &Wrapped {
        &self.block
    }
    /// How the call ended.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        self.inner.outcome()
    }
    /// The guarded text, without the envelope.
    #[must_use]
    pub fn content(&self) -> &Sanitized {
        self.inner.content()
    }
    /// The guarded error text; empty if there is no error.
    #[must_use]
    pub fn error(&self) -> &Sanitized {
        self.inner.error()
    }
    /// The guarded JSON text, or empty.
    #[must_use]
    pub fn structured_content(&self) -> &Sanitized {
        self.inner.structured_content()
    }
    /// What the guard did.
    #[must_use]
    pub fn report(&self) -> &Report {
        self.inner.report()
    }
    /// The plugin that wrote the text, if it is not the one that was called.
    #[must_use]
    pub fn written_by(&self) -> Option<&str> {
        self.inner.0.written_by.as_deref()
    }
    /// The parts of the fields that the plugin wrote, without the host's notices.
    pub(crate) fn texts_of_plugin(&self) -> impl Iterator<Item = &str> {
        let Fields { content, error, structured_content, .. } = &*self.inner.0;
        [content, error, structured_content].into_iter().flat_map(Body::parts).filter_map(|part| match part {
            PartRef::Text(text) => Some(text),
            PartRef::Notice(_) => None,
        })
    }
    pub(crate) fn set_tainted_by(&mut self, plugins: Vec<String>) {
        self.inner.0.report.tainted_by = plugins;
    }
    /// Returns the parts, for a host that sends them on.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        let Fields {
            outcome,
            content,
            error,
            structured_content,
            media,
            input_request,
            report,
            originals,
            ..
        } = *self.inner.0;
        Parts {
            block: self.block,
            outcome,
            content: content.into_whole(),
            error: error.into_whole(),
            structured_content: structured_content.into_whole(),
            media,
            input_request,
            report,
            originals: originals.map(|originals| *originals).unwrap_or_default(),
        }
    }
}

/// The parts of a [`Guarded`] answer. They cannot be joined again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parts {
    /// The answer as a model gets it.
    pub block: Wrapped,
    /// How the call ended.
    pub outcome: Outcome,
    /// The guarded text, without the envelope.
    pub content: Sanitized,
    /// The guarded error text; empty if there is no error.
    pub error: Sanitized,
    /// The guarded JSON text, or empty.
    pub structured_content: Sanitized,
    /// What is passed on of images, audio, resources and links. Their texts are sanitized.
    pub media: Vec<Media>,
    /// What the plugin asks the caller's user for before it answers. The question is the content.
    pub input_request: Option<Box<InputRequest>>,
    /// What the guard did.
    pub report: Report,
    /// What marked pieces were before, if the call wants that
    /// ([`CallFields::wants_originals`](crate::CallFields::wants_originals)). Not sanitized: never for a model.
    pub originals: MarkedSpans,
}

/// Makes [`Wrap`] services.
#[derive(Debug, Clone, Copy, Default)]
pub struct WrapLayer {
    mode: EnvelopeMode,
    executor: Executor,
}

impl WrapLayer {
    /// A layer with this envelope. There is no mode without an envelope, because a host could then switch it
    /// off.
    #[must_use]
    pub fn new(mode: EnvelopeMode) -> Self {
        Self { mode, executor: Executor::default() }
    }

    /// Sets what runs the work on large answers.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }
}

impl<S> Layer<S> for WrapLayer {
    type Service = Wrap<S>;
    fn layer(&self, inner: S) -> Wrap<S> {
        Wrap { mode: self.mode, executor: self.executor, inner }
    }
}

/// Wraps answers: see the [module](self).
#[derive(Debug, Clone)]
pub struct Wrap<S> {
    mode: EnvelopeMode,
    executor: Executor,
    inner: S,
}

impl<S> Service<Call> for Wrap<S>
where
    S: Service<Call, Response = SanitizedAnswer>,
{
    type Response = Guarded;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, call: Call) -> Self::Future {
        // Only an envelope with attributes names the call.
        let subject = match self.mode {
            EnvelopeMode::Plain => None,
            EnvelopeMode::Nonce | EnvelopeMode::Quoted => Some((call.plugin.clone(), call.id.clone())),
        };
        ResponseFuture { future: self.inner.call(call), mode: self.mode, executor: self.executor, subject }
    }
}

pin_project! {
    /// The answer to one call.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        mode: EnvelopeMode,
        executor: Executor,
        subject: Option<(Arc<str>, Arc<str>)>,
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<SanitizedAnswer, E>>,
{
    type Output = Result<Guarded, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let inner = ready!(this.future.poll(cx))?;
        let (plugin, call_id) = this.subject.as_ref().map_or(("", ""), |(plugin, id)| (&**plugin, &**id));
        let (mode, subject) = (*this.mode, Subject { plugin, call_id });
        let bytes = inner.report().bytes_out;
        Poll::Ready(Ok(this.executor.run(bytes, || Guarded::new(mode, subject, inner))))
    }
}

#[cfg(test)]
mod tests;
