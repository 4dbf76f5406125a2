//! The exported attributes of a span: a closed list, from the span's fields.

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;

use super::bounds::{AGENT_SCOPE, neutralize};

/// The service that callers use.
const HOST: &str = "talon.host.v1.Host";
/// The service that plugins implement, whatever name they serve it under.
const PLUGIN: &str = "opentalon.plugin.v1.PluginService";

/// The fields of our spans and their attribute names. Other fields are not exported.
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

/// The span as it is exported. Texts from callers (plugin, action, session) are neutralized and bounded.
pub(super) fn to_exported(mut span: SpanData) -> SpanData {
    if span.instrumentation_scope.name() == AGENT_SCOPE {
        // It was made for export.
        return span;
    }
    let (kind, service) = match span.name.as_ref() {
        "call" => (SpanKind::Server, HOST),
        _ => (SpanKind::Client, PLUGIN),
    };
    let fields = std::mem::take(&mut span.attributes);
    let known = fields.into_iter().filter_map(|field| {
        let (_, attribute) = ATTRIBUTES.iter().find(|(name, _)| *name == field.key.as_str())?;
        Some(KeyValue::new(*attribute, neutralize(field.value)))
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
    // A tool that answers "no" has done its work, and a refusal is the guard's normal work.
    if is("host_fault") {
        span.status = Status::error("");
    }
    span
}
