//! Parses the error responses of providers.

use std::time::Duration;

use serde_json::Value;

/// The longest delay that is believed: a day, as in the configuration.
const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An error response, in any of the formats in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// All codes that it contains, in lower case, separated and enclosed by spaces: ` invalid_request_error
    /// context_length_exceeded `.
    pub(crate) codes: String,
    /// A status inside the body; some providers send an error with 200.
    pub(crate) status: Option<u16>,
    /// The message for people.
    pub(crate) message: String,
    /// The wait that it asks for, as Google's `RetryInfo` does.
    pub(crate) retry_after: Option<Duration>,
    /// The body is a web page: of a proxy, a login, or a wrong address.
    pub(crate) is_page: bool,
}

impl Report {
    /// Parses the body of an error status.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        match serde_json::from_str::<Value>(text) {
            Ok(value) => {
                Self::of(&value).unwrap_or_else(|| Self { message: text.to_owned(), ..Self::default() })
            }
            Err(_) if text.starts_with('<') => {
                Self { is_page: true, message: title(text), ..Self::default() }
            }
            Err(_) => Self { message: text.to_owned(), ..Self::default() },
        }
    }

    /// The error in a JSON value, if it is one.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        // Gemini wraps it in a list.
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null());
        let inner = match error {
            // Ollama.
            Some(Value::String(message)) => {
                return Some(Self { message: message.clone(), ..Self::default() });
            }
            // OpenAI, Anthropic, OpenRouter, DeepSeek.
            Some(inner) => inner,
            // vLLM has it without a wrapping, and servers in Python have `detail`.
            None if value.get("object").is_some_and(|object| object == "error") => value,
            None if value.get("detail").is_some() => value,
            None => return None,
        };
        let mut report = Self { codes: " ".to_owned(), ..Self::default() };
        for field in ["code", "type", "status"] {
            match inner.get(field) {
                Some(Value::String(code)) => {
                    report.codes.push_str(&code.to_lowercase());
                    report.codes.push(' ');
                }
                Some(Value::Number(code)) => report.status = report.status.or(code.as_u64().and_then(status)),
                _ => {}
            }
        }
        let message = ["message", "detail"].into_iter().find_map(|field| inner.get(field));
        report.message = match message {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => inner.to_string(),
        };
        for detail in inner.get("details").and_then(Value::as_array).into_iter().flatten() {
            if let Some(reason) = detail["reason"].as_str() {
                report.codes.push_str(&reason.to_lowercase());
                report.codes.push(' ');
            }
            let delay = detail["retryDelay"].as_str().and_then(delay);
            report.retry_after = report.retry_after.max(delay);
        }
        // OpenRouter: what the provider behind it said.
        if let Some(raw) = inner.pointer("/metadata/raw").and_then(Value::as_str) {
            report.message = format!("{}: {raw}", report.message);
        }
        Some(report)
    }

    pub(crate) fn has_code(&self, codes: &[&str]) -> bool {
        codes.iter().any(|code| self.codes.contains(&format!(" {code} ")))
    }
}

/// Google's way to write a duration: seconds with `s` behind them, such as `37.5s`.
fn delay(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().map(|delay| delay.min(MAX_DELAY))
}

fn status(code: u64) -> Option<u16> {
    u16::try_from(code).ok().filter(|code| (400..600).contains(code))
}

/// A page's title, which usually says whose page it is.
fn title(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let titled = || {
        let start = lower.find("<title>")? + "<title>".len();
        let end = lower[start..].find("</title>")? + start;
        Some(page[start..end].to_owned())
    };
    titled().unwrap_or_else(|| "without a title".to_owned())
}
