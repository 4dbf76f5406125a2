//! The headers of a call that the faults need.

use std::time::Duration;

use http::HeaderMap;

/// The headers of a call.
pub(crate) struct Headers {
    /// How long the call may take.
    pub(crate) time: Option<Duration>,
    /// `traceparent` and `tracestate`, with a space between them.
    pub(crate) trace: String,
}

impl Headers {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let trace = [text("traceparent"), text("tracestate")].into_iter().flatten().collect::<Vec<_>>();
        Self { time: text("grpc-timeout").and_then(timeout), trace: trace.join(" ") }
    }
}

/// The value of a grpc-timeout header: at most eight digits and a unit.
fn timeout(value: &str) -> Option<Duration> {
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}
