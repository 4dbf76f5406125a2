//! `Retry-After`: seconds or a date.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// OpenAI and Anthropic say it more exactly here.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// When the provider wants to be asked again. A date that is past means now.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |value: &reqwest::header::HeaderValue| value.to_str().ok().map(|text| text.trim().to_owned());
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(millis) = headers.get(RETRY_AFTER_MS).and_then(text).and_then(|text| number(&text)) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = headers.get(RETRY_AFTER).and_then(text)?;
    // Some send fractions, which the standard does not have.
    if let Some(seconds) = number(&value) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(&value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &str) -> Option<Duration> {
        let now = httpdate::parse_http_date("Sun, 22 Nov 2026 12:00:00 GMT").expect("a date");
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().expect("a header"));
        retry_after(&headers, now)
    }

    #[test]
    fn seconds_and_dates_are_read() {
        assert_eq!(read("retry-after", "20"), Some(Duration::from_secs(20)));
        assert_eq!(read("retry-after", " 1.5 "), Some(Duration::from_millis(1500)));
        assert_eq!(read("retry-after", "Sun, 22 Nov 2026 12:01:30 GMT"), Some(Duration::from_secs(90)));
        assert_eq!(read("retry-after", "Sunday, 22-Nov-26 12:01:30 GMT"), Some(Duration::from_secs(90)));
        assert_eq!(read("retry-after", "Sun, 22 Nov 2020 12:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for bad in ["", "soon", "-1", "inf", "NaN", "1e300"] {
            assert_eq!(read("retry-after", bad), None, "{bad}");
        }
    }
}
