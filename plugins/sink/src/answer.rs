//! What a server's answer means for the delivery.

use std::time::{Duration, SystemTime};

use crate::delivery::Delivery;
use crate::peer_text::{one_line, without_secrets};
use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

/// How much of an answer's body is read: a reason. The rest is left.
pub const MAX_REASON_BYTES: usize = 2 << 10;
/// The longest time that a server may ask to be left alone: an hour, as the role has it.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);

/// What became of a delivery by the server's status, headers and the beginning of its body.
#[must_use]
pub fn delivery(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[&str],
    now: SystemTime,
) -> Delivery {
    if status.is_success() {
        return Delivery::Delivered(None);
    }
    let body = String::from_utf8_lossy(body);
    let body = without_secrets(&body, secrets);
    let said = if body.trim().is_empty() { String::new() } else { format!(": {body}") };
    let reason = one_line(&format!("the server answered {status}{said}"));
    if status.is_redirection() {
        let place = headers.get(LOCATION).map(|place| String::from_utf8_lossy(place.as_bytes()));
        let place = place.map(|place| format!(" to {}", without_secrets(&place, secrets)));
        return Delivery::refused(format!(
            "the server answered {status}: it redirects{}, and redirects are not followed; configure the URL where it is",
            place.unwrap_or_default()
        ));
    }
    let later = status.is_server_error()
        || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS]
            .contains(&status);
    if later { Delivery::Retry(reason, retry_after(headers, now)) } else { Delivery::Refused(reason) }
}

/// When the server wants to be asked again: seconds, or a date. At most an hour counts.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let after = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A date that has passed means now.
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(after.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::HeaderValue;

    use super::*;

    fn answered(status: u16, headers: &[(http::HeaderName, &'static str)], body: &str) -> Delivery {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        let now = UNIX_EPOCH + Duration::from_secs(1_780_000_000);
        let status = StatusCode::from_u16(status).expect("a status");
        delivery(status, &headers, body.as_bytes(), &["/services/T0/xyz"], now)
    }

    // Promises: EXT-77
    #[test]
    fn a_status_is_delivered_later_or_never() {
        for status in [200, 201, 202, 204] {
            assert_eq!(answered(status, &[], "ok"), Delivery::Delivered(None));
        }
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert!(matches!(answered(status, &[], ""), Delivery::Retry(_, None)), "{status}");
        }
        for status in [300, 301, 307, 400, 401, 403, 404, 410, 413, 422] {
            assert!(matches!(answered(status, &[], ""), Delivery::Refused(_)), "{status}");
        }
    }

    #[test]
    fn a_reason_is_one_line_without_secrets() {
        let said = answered(404, &[], "no_team\n\u{1b}[31m at /services/T0/xyz");
        assert_eq!(
            said,
            Delivery::Refused("the server answered 404 Not Found: no_team [31m at [hidden]".to_owned())
        );
        let Delivery::Refused(long) = answered(400, &[], &"x ".repeat(5000)) else { panic!("refused") };
        assert!(long.chars().count() <= 300, "{long}");
        let away = answered(302, &[(LOCATION, "https://example.org/services/T0/xyz")], "");
        assert!(
            matches!(&away, Delivery::Refused(why) if why.contains("to https://example.org[hidden],")),
            "{away:?}"
        );
    }

    #[test]
    fn a_server_says_when_it_wants_to_be_asked_again() {
        for (value, seconds) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("999999999999", Some(3600)),
            ("Thu, 28 May 2026 20:27:40 GMT", Some(60)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            let Delivery::Retry(_, after) = answered(503, &[(RETRY_AFTER, value)], "") else {
                panic!("retry")
            };
            assert_eq!(after, seconds.map(Duration::from_secs), "{value}");
        }
    }
}
