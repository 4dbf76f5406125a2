//! When a provider wants to be asked again: in headers, or in the text of its error.
//!
//! | where | form |
//! |---|---|
//! | `retry-after-ms` | milliseconds: OpenAI and Azure say it more exactly here |
//! | `retry-after` | seconds, or a date |
//! | `x-ratelimit-reset-requests`, `-tokens` | OpenAI, Groq: `1s`, `6m0s`, `120ms` |
//! | `anthropic-ratelimit-requests-reset`, `-tokens-`, `-input-tokens-`, `-output-tokens-` | a time by RFC 3339 |
//! | `x-ratelimit-reset` | OpenRouter: milliseconds since 1970; others: seconds since 1970, or from now |
//! | the error's text | `Please try again in 6m0s`, `Please retry after 59 seconds`, `Please retry in 37.1s` |
//!
//! Of the limits, the one counts that is used up (`…remaining…` is 0).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};

const RETRY_AFTER_MS: &str = "retry-after-ms";
/// Reset and rest of each limit.
const LIMITS: [(&str, &str); 7] = [
    ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
    ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ("anthropic-ratelimit-requests-reset", "anthropic-ratelimit-requests-remaining"),
    ("anthropic-ratelimit-tokens-reset", "anthropic-ratelimit-tokens-remaining"),
    ("anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-input-tokens-remaining"),
    ("anthropic-ratelimit-output-tokens-reset", "anthropic-ratelimit-output-tokens-remaining"),
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
];
/// From this number on a reset is a time in seconds since 1970, and from a thousand times as much in
/// milliseconds: 2001, when there were no such headers.
const EPOCH_SECONDS: f64 = 1e9;
/// What a time in the error's text follows.
const PHRASES: [&str; 4] = ["try again in ", "retry in ", "retry after ", "try again after "];
/// The longest that is believed: a day, as in the configuration.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// When the provider wants to be asked again. A date that is past means now. Limits count with the status
/// that says that one is used up.
pub(crate) fn retry_after(headers: &HeaderMap, status: u16, now: SystemTime) -> Option<Duration> {
    if let Some(millis) = text(headers, RETRY_AFTER_MS).and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    match text(headers, RETRY_AFTER.as_str()) {
        // Some send fractions, which the standard does not have.
        Some(value) => match number(value) {
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            None => {
                let date = httpdate::parse_http_date(value).ok()?;
                Some(date.duration_since(now).unwrap_or_default())
            }
        },
        None if status == 429 => limit_reset(headers, now),
        None => None,
    }
}

/// The wait that an error's text names.
pub(crate) fn stated_wait(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    PHRASES.iter().find_map(|phrase| span(message.split_once(phrase)?.1))
}

/// The latest reset of the limits that are used up.
fn limit_reset(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let used_up = LIMITS.iter().filter(|(_, rest)| text(headers, rest).and_then(number) == Some(0.0));
    used_up.filter_map(|(reset, _)| reset_in(text(headers, reset)?, now)).max()
}

fn reset_in(value: &str, now: SystemTime) -> Option<Duration> {
    let since = |time: Duration| (UNIX_EPOCH + time).duration_since(now).unwrap_or_default();
    let wait = match number(value) {
        Some(millis) if millis >= EPOCH_SECONDS * 1000.0 => {
            since(Duration::try_from_secs_f64(millis / 1000.0).ok()?)
        }
        Some(seconds) if seconds >= EPOCH_SECONDS => since(Duration::try_from_secs_f64(seconds).ok()?),
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        None => span(value).or_else(|| Some(since(rfc3339(value)?)))?,
    };
    Some(wait.min(MAX_WAIT))
}

/// A time such as `6m0s`, `7.66s`, `120ms` or `59 seconds` at the beginning of a text; without a unit it is
/// none.
fn span(text: &str) -> Option<Duration> {
    let (mut rest, mut sum, mut found) = (text, 0.0, false);
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Some(value) = number(rest[..digits].trim_end_matches('.')) else { break };
        let after = rest[digits..].trim_start_matches(' ');
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let seconds = match &after[..letters] {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        sum += value * seconds;
        found = true;
        rest = &after[letters..];
    }
    found.then(|| Duration::try_from_secs_f64(sum).ok()).flatten().map(|wait| wait.min(MAX_WAIT))
}

/// A time in UTC such as `2026-11-22T12:00:30Z`, since 1970; fractions of a second are left out.
fn rfc3339(text: &str) -> Option<Duration> {
    let (date, time) = text.trim().strip_suffix('Z')?.split_once('T')?;
    let part =
        |text: &str, place: usize, separator: char| text.split(separator).nth(place)?.parse::<u64>().ok();
    let [year, month, day] = [0, 1, 2].map(|place| part(date, place, '-'));
    let whole = time.split('.').next()?;
    let [hours, minutes, seconds] = [0, 1, 2].map(|place| part(whole, place, ':'));
    let (year, month, day) = (year?, month?, day?);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days of years that begin in March, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1;
    /// The days from the beginning of that count to 1970.
    const TO_1970: u64 = 719_468;
    Some(Duration::from_secs((days - TO_1970) * 86_400 + hours? * 3600 + minutes? * 60 + seconds?))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).map(HeaderValue::to_str)?.ok().map(str::trim)
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let now = httpdate::parse_http_date("Sun, 22 Nov 2026 12:00:00 GMT").expect("a date");
        let headers = headers.iter().map(|(name, value)| {
            (name.parse::<reqwest::header::HeaderName>().expect("a name"), value.parse().expect("a header"))
        });
        retry_after(&headers.collect(), 429, now)
    }

    fn read(name: &'static str, value: &str) -> Option<Duration> {
        read_all(&[(name, value)])
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

    /// As OpenAI's, Anthropic's and OpenRouter's documents have them.
    // Promises: AGENT-68
    #[test]
    fn the_limit_that_is_used_up_says_when() {
        let of = |reset, value, rest, left| read_all(&[(reset, value), (rest, left)]);
        let (reset, rest) = ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens");
        assert_eq!(of(reset, "6m0s", rest, "0"), Some(Duration::from_secs(360)));
        assert_eq!(of(reset, "120ms", rest, "0"), Some(Duration::from_millis(120)));
        assert_eq!(of(reset, "6m0s", rest, "149984"), None);
        let (reset, rest) =
            ("anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-input-tokens-remaining");
        assert_eq!(of(reset, "2026-11-22T12:00:30Z", rest, "0"), Some(Duration::from_secs(30)));
        let (reset, rest) = ("x-ratelimit-reset", "x-ratelimit-remaining");
        assert_eq!(of(reset, "1795348860000", rest, "0"), Some(Duration::from_secs(60)));
        assert_eq!(of(reset, "1795348860", rest, "0"), Some(Duration::from_secs(60)));
        for bad in ["", "2026-13-01T00:00:00Z", "2026", "soon", "12 parsecs"] {
            let wait =
                of("anthropic-ratelimit-requests-reset", bad, "anthropic-ratelimit-requests-remaining", "0");
            assert!(wait.is_none() || bad == "2026", "{bad}: {wait:?}");
        }
    }

    // Promises: AGENT-68
    #[test]
    fn the_text_of_an_error_says_when() {
        let seconds = |text| stated_wait(text).map(|wait| wait.as_secs_f64());
        assert_eq!(seconds("Rate limit reached for gpt-4o. Please try again in 6m0s. Visit …"), Some(360.0));
        assert_eq!(seconds("Please try again in 7.66s."), Some(7.66));
        assert_eq!(seconds("Please try again in 248ms."), Some(0.248));
        assert_eq!(seconds("Please retry after 59 seconds."), Some(59.0));
        assert_eq!(seconds("Please retry in 37.1s."), Some(37.1));
        assert_eq!(seconds("try again in 999999h"), Some(86_400.0));
        for none in ["", "try again in a while", "retry in 7", "try again in ....s"] {
            assert_eq!(seconds(none), None, "{none}");
        }
    }
}
