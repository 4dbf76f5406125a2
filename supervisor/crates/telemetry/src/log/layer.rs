//! Converts events into lines: the event's own fields, and those of every span around it.

use std::time::SystemTime;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::line::{Fields, Line, Visitor};
use super::writer::Writer;

/// Sends each event to the writer as one flat [`Line`]. So every line within a call has the call's fields.
pub(crate) struct LineLayer {
    writer: Writer,
}

impl LineLayer {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer }
    }
}

impl<S> Layer<S> for LineLayer
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        // Avoids growing the vector: far more spans begin than lines are written, because every call has one.
        let room = Fields::with_capacity(attributes.values().len());
        let mut visitor = Visitor { fields: room, ..Visitor::default() };
        attributes.record(&mut visitor);
        if let Some(span) = ctx.span(id) {
            span.extensions_mut().insert(visitor.fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, ctx: Context<'_, S>) {
        let mut visitor = Visitor::default();
        values.record(&mut visitor);
        if let Some(span) = ctx.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            fields.append(visitor.fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let mut visitor = Visitor::default();
        event.record(&mut visitor);
        let mut fields = Fields::default();
        for span in ctx.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(around) = span.extensions().get::<Fields>() {
                fields.extend(around);
            }
        }
        fields.append(visitor.fields);
        self.writer.line(Line {
            at: SystemTime::now(),
            level: *event.metadata().level(),
            target: visitor.target.unwrap_or_else(|| event.metadata().target().to_owned()),
            message: visitor.message,
            fields,
        });
    }
}
