//! The `grpc-timeout` header: how long the caller waits.

use std::time::Duration;

use tokio::time::Instant;
use tonic::codegen::http::HeaderMap;

/// The gRPC specification allows at most eight digits.
const MAX_DIGITS: usize = 8;

/// The deadline by a request's headers, counted from now; `None` without a valid timeout.
#[must_use]
pub fn deadline_of(headers: &HeaderMap) -> Option<Instant> {
    Instant::now().checked_add(parse(headers.get("grpc-timeout")?.to_str().ok()?)?)
}

fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(number * 3600)),
        'M' => Some(Duration::from_secs(number * 60)),
        'S' => Some(Duration::from_secs(number)),
        'm' => Some(Duration::from_millis(number)),
        'u' => Some(Duration::from_micros(number)),
        'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, expected) in [
            ("2H", Duration::from_secs(7200)),
            ("2M", Duration::from_secs(120)),
            ("2S", Duration::from_secs(2)),
            ("2m", Duration::from_millis(2)),
            ("2u", Duration::from_micros(2)),
            ("2n", Duration::from_nanos(2)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn garbage_is_no_timeout() {
        for text in ["", "S", "5", "5x", "-5S", "+5S", "123456789S", "5é", "1.5S", " 5S"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
