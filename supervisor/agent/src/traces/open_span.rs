//! A span that has begun.

use std::time::{SystemTime, UNIX_EPOCH};

use talon_proto::agent::Span;

use super::{SpanContext, Tracer};

/// A span that has begun. It is recorded by [`OpenSpan::end`]; dropped, it leaves nothing.
#[derive(Debug)]
pub struct OpenSpan {
    context: SpanContext,
    start: SystemTime,
    span: Span,
}

impl OpenSpan {
    /// Begins a span at this position.
    #[must_use]
    pub fn begin(context: SpanContext, name: String) -> Self {
        Self { context, start: SystemTime::now(), span: Span { name, ..Span::default() } }
    }

    /// Its position.
    #[must_use]
    pub fn context(&self) -> SpanContext {
        self.context
    }

    /// Says that it is a request to another service.
    #[must_use]
    pub fn client(mut self) -> Self {
        self.span.client = true;
        self
    }

    /// Sets another name.
    pub fn rename(&mut self, name: String) {
        self.span.name = name;
    }

    /// Sets a text, unless it is empty.
    #[must_use]
    pub fn text(mut self, attribute: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.span.texts.insert(attribute.to_owned(), text);
        }
        self
    }

    /// Sets a number.
    #[must_use]
    pub fn number(mut self, attribute: &str, number: u64) -> Self {
        self.span.numbers.insert(attribute.to_owned(), i64::try_from(number).unwrap_or(i64::MAX));
        self
    }

    /// Says that it failed, with a word.
    #[must_use]
    pub fn failed(mut self, word: &str) -> Self {
        self.span.error = true;
        self.text("error.type", word)
    }

    /// Ends it now, and records it if its trace is.
    pub fn end(self, tracer: &Tracer) {
        let Self { context, start, span } = self;
        if !context.is_recorded {
            return;
        }
        let nanos = |time: SystemTime| {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        };
        let parent_span_id = match context.parent {
            0 => Vec::new(),
            parent => parent.to_be_bytes().to_vec(),
        };
        // A clock that was set back gives no span of negative length.
        let (start_unix_ns, now) = (nanos(start), nanos(SystemTime::now()));
        tracer.record(Span {
            trace_id: context.position.trace_id.to_be_bytes().to_vec(),
            span_id: context.position.span_id.to_be_bytes().to_vec(),
            parent_span_id,
            start_unix_ns,
            end_unix_ns: now.max(start_unix_ns),
            ..span
        });
    }
}
