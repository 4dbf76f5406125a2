//! What is told of a span: a closed list of attributes, from the span's fields.

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::SpanData;
use talon_sanitize::Raw;

/// The longest value, in bytes: names, ids and words are at most 128 by contract, and what was made inert may be longer.
const MAX_VALUE_BYTES: usize = 256;

/// The service that callers call.
const HOST: &str = "talon.host.v1.Host";
/// The service that is called at plugins; by whatever name they serve it.
const PLUGIN: &str = "opentalon.plugin.v1.PluginService";

/// Fields of our spans, and the attributes that they are. What is not here is not told.
const ATTRIBUTES: [(&str, &str); 8] = [
    ("call_id", "talon.call_id"),
    ("plugin", "talon.plugin"),
    ("action", "talon.action"),
    ("origin", "talon.origin"),
    ("session", "talon.session"),
    ("instance", "talon.instance"),
    ("outcome", "talon.outcome"),
    ("reason", "talon.reason"),
];

/// The span as it is sent. What callers wrote (plugin, action, session) is inert and bounded.
pub(super) fn told(mut span: SpanData) -> SpanData {
    let (kind, service) = match span.name.as_ref() {
        "call" => (SpanKind::Server, HOST),
        _ => (SpanKind::Client, PLUGIN),
    };
    let fields = std::mem::take(&mut span.attributes);
    let known = fields.into_iter().filter_map(|field| {
        let (_, attribute) = ATTRIBUTES.iter().find(|(name, _)| *name == field.key.as_str())?;
        Some(KeyValue::new(*attribute, inert(field.value)))
    });
    let rpc = [
        KeyValue::new("rpc.system", "grpc"),
        KeyValue::new("rpc.service", service),
        KeyValue::new("rpc.method", "Execute"),
    ];
    span.attributes = rpc.into_iter().chain(known).collect();
    span.span_kind = kind;
    let is = |outcome: &str| {
        span.attributes.iter().any(|a| a.key.as_str() == "talon.outcome" && a.value.as_str() == outcome)
    };
    // A tool that says no has done its work, and a refusal is the guard doing its own.
    if is("host_fault") {
        span.status = Status::error("");
    }
    span
}

fn inert(value: Value) -> Value {
    match value {
        Value::Bool(_) | Value::I64(_) | Value::F64(_) => value,
        text => Raw::from(text.as_str().as_ref()).line_within(MAX_VALUE_BYTES).into_string().into(),
    }
}
