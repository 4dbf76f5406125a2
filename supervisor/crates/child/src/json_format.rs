//! Log lines as flat JSON: the fields of an event and of all its spans, each once.
//!
//! The JSON format of `tracing_subscriber` nests the spans' fields, so that a field which the event repeats,
//! such as its session, appears twice in a line.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats lines as flat JSON. Fields of inner spans and of the event replace those of outer spans.
pub(crate) struct FlatJson;

impl<S> FormatEvent<S, JsonFields> for FlatJson
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut said = Fields::default();
        for span in ctx.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let kept = extensions.get::<FormattedFields<JsonFields>>();
            // The same library wrote this JSON when the span started.
            if let Some(Ok(fields)) =
                kept.map(|kept| serde_json::from_str::<Map<String, Value>>(&kept.fields))
            {
                said.fields.extend(fields);
            }
        }
        event.record(&mut said);
        let metadata = event.metadata();
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), time.into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        line.insert("message".to_owned(), said.message.into());
        line.insert("target".to_owned(), said.target.unwrap_or_else(|| metadata.target().to_owned()).into());
        for (name, value) in said.fields {
            // A field must not replace one of the line's standard entries.
            let name = if line.contains_key(&name) { format!("{name}_") } else { name };
            line.insert(name, value);
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    /// The target of a record of the `log` crate: all of these have the same tracing target.
    target: Option<String>,
    fields: Map<String, Value>,
}

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        match field.name() {
            "message" => self.message = text(value),
            "log.target" => self.target = Some(text(value)),
            // Module, file and line, which other log lines do not have.
            name if name.starts_with("log.") => {}
            name => drop(self.fields.insert(name.to_owned(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_span_and_an_event_both_say_stands_once_in_a_line() {
        let kept = SharedBuffer::default();
        let writer = kept.clone();
        let log = tracing_subscriber::fmt()
            .fmt_fields(JsonFields::new())
            .event_format(FlatJson)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(log, || {
            let turn =
                tracing::info_span!("turn", correlation_id = "c1", session = %"s1", turn = 7, level = "x");
            let _within = turn.enter();
            tracing::warn!(target: "agent", session = %"s1", error = "no\n\"way\"", ok = false, "it {}", "fails");
        });
        let text = String::from_utf8(kept.0.lock().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!((text.matches("s1").count(), text.matches("c1").count()), (1, 1), "{text}");
        let mut line: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert!(line.remove("timestamp").is_some_and(|time| time.as_str().unwrap().ends_with('Z')), "{text}");
        let expected = serde_json::json!({
            "level": "WARN", "message": "it fails", "target": "agent", "correlation_id": "c1", "session": "s1",
            "turn": 7, "level_": "x", "error": "no\n\"way\"", "ok": false
        });
        assert_eq!(Value::Object(line), expected);
    }
}
