//! `tracing` events on stderr as JSON lines in hclog's form, the one that go-plugin hosts and Talon read
//! levels from.

use std::fmt;
use std::io::{self, Write};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::text::shorten;

/// Which events are logged, in the syntax of `tracing_subscriber::EnvFilter`. When unset: the plugin's own
/// default, or `info`.
const FILTER_ENV: &str = "TALON_LOG";
/// The longest line. Talon cuts lines at 8 KiB, and a truncated JSON line is not JSON any more.
const MAX_LINE_BYTES: usize = 8000;
/// The longest single text in a line; leaves room for a few others.
const MAX_TEXT_BYTES: usize = 2000;

/// Installs the subscriber and a panic hook that logs through it. Does nothing when the plugin has installed
/// a subscriber.
pub(crate) fn install(usual: &str) {
    let (filter, complaint) = match std::env::var(FILTER_ENV) {
        Ok(text) => match EnvFilter::try_new(&text) {
            Ok(filter) => (filter, None),
            Err(error) => {
                (EnvFilter::new(usual), Some(format!("{FILTER_ENV}={text:?}: {error}; using {usual}")))
            }
        },
        Err(_) => (EnvFilter::new(usual), None),
    };
    let layer = HclogLayer { writer: io::stderr };
    if tracing_subscriber::registry().with(layer.with_filter(filter)).try_init().is_err() {
        return;
    }
    if let Some(complaint) = complaint {
        tracing::warn!("{complaint}");
    }
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        let message = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(location, "panic: {message}");
    }));
}

/// Writes each event as one line.
struct HclogLayer<W> {
    writer: W,
}

/// The fields of one span, kept until its events are written. Few spans have fields, so this stays a plain
/// list.
struct SpanFields(Vec<(&'static str, Value)>);

impl<S, W> Layer<S> for HclogLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(SpanFields(fields.others));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(SpanFields(known)) = span.extensions_mut().get_mut()
        {
            let mut fields = Fields::default();
            values.record(&mut fields);
            known.retain(|(name, _)| fields.others.iter().all(|(new, _)| new != name));
            known.extend(fields.others);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut line = Map::new();
        line.insert("@level".to_owned(), level(*event.metadata().level()).into());
        line.insert("@message".to_owned(), fields.message.into());
        line.insert("@module".to_owned(), event.metadata().target().into());
        line.insert("@timestamp".to_owned(), now().into());
        let essential = line.clone();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(SpanFields(known)) = span.extensions().get() {
                for (key, value) in known {
                    line.entry(*key).or_insert_with(|| value.clone());
                }
            }
        }
        line.extend(fields.others.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let mut text = Value::Object(line).to_string();
        if text.len() > MAX_LINE_BYTES {
            text = Value::Object(essential).to_string();
        }
        text.push('\n');
        // One write, so that lines of several threads do not mix. When stderr is gone there is nowhere to
        // report the error.
        let _ = self.writer.make_writer_for(event.metadata()).write_all(text.as_bytes());
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::TRACE => "trace",
        Level::DEBUG => "debug",
        Level::INFO => "info",
        Level::WARN => "warn",
        Level::ERROR => "error",
    }
}

fn now() -> String {
    let mut text = String::new();
    match SystemTime.format_time(&mut Writer::new(&mut text)) {
        Ok(()) => text,
        Err(fmt::Error) => String::new(),
    }
}

/// The fields of an event or a span: the message, and the others as JSON.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        // Names with an @ are reserved by hclog.
        let name = field.name().trim_start_matches('@');
        self.others.push((name, value));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = shorten(&format!("{value:?}"), MAX_TEXT_BYTES);
        if field.name() == "message" {
            self.message = text;
        } else {
            self.put(field, text.into());
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text = shorten(value, MAX_TEXT_BYTES);
        if field.name() == "message" {
            self.message = text;
        } else {
            self.put(field, text.into());
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let layer = HclogLayer { writer: move || writer.clone() };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let bytes = buffer.0.lock().clone();
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }

    // Promises: SDK-17
    #[test]
    fn an_event_is_one_line_with_its_level() {
        let lines = logged(|| {
            tracing::warn!(count = 3, ratio = 0.5, ok = true, name = "n\nm", "low on {}", "space");
            tracing::trace!("quiet");
        });
        let line = &lines[0];
        assert_eq!((&line["@level"], &line["@message"]), (&"warn".into(), &"low on space".into()));
        assert_eq!((&line["count"], &line["ratio"], &line["ok"]), (&3.into(), &0.5.into(), &true.into()));
        assert_eq!(line["name"], "n\nm");
        assert_eq!(line["@module"], "talon_sdk::logging::tests");
        let timestamp = line["@timestamp"].as_str().expect("text");
        assert!(timestamp.ends_with('Z') && timestamp.contains('T'), "{timestamp}");
        assert_eq!(lines[1]["@level"], "trace");
    }

    #[test]
    fn an_event_carries_the_fields_of_its_spans() {
        let lines = logged(|| {
            let span = tracing::info_span!("call", call_id = "c1", late = tracing::field::Empty);
            span.record("late", 7);
            span.in_scope(|| tracing::info!(call_id = "mine", "inside"));
            span.in_scope(|| tracing::info!("inside"));
        });
        assert_eq!((&lines[0]["call_id"], &lines[0]["late"]), (&"mine".into(), &7.into()));
        assert_eq!(lines[1]["call_id"], "c1");
    }

    // Promises: SDK-17
    #[test]
    fn a_line_stays_below_the_hosts_limit_and_is_still_json() {
        let long = "é".repeat(100_000);
        let lines = logged(|| {
            tracing::info!(a = %long, b = %long, c = %long, d = %long, e = %long, "{long}");
            tracing::info!(a = %long, "short");
        });
        assert!(lines[0].to_string().len() <= MAX_LINE_BYTES);
        assert!(lines[0].get("a").is_none(), "the fields went, the message stayed");
        assert!(lines[1]["a"].as_str().expect("text").len() < MAX_TEXT_BYTES + 4);
    }
}
