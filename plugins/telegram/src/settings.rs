//! The plugin's settings.

use std::time::Duration;

use serde::Deserialize;
use talon_sdk::ToolError;

/// Where the Bot API is.
const DEFAULT_API: &str = "https://api.telegram.org";
/// How long a poll waits for something to happen unless set. 25 s: below what proxies let a silent connection live.
const DEFAULT_POLL_SECONDS: u64 = 25;
/// The longest `poll_seconds`: what Telegram waits at most.
const MAX_POLL_SECONDS: u64 = 50;

/// What an operator writes under `config`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Where the Bot API is, if it is a server of your own.
    pub(crate) api: Option<String>,
    /// Whether `api` may be `http`. Off by default, but for loopback addresses.
    pub(crate) allow_http: bool,
    /// How long a poll waits, in seconds: 25 unless given, at most 50.
    pub(crate) poll_seconds: Option<u64>,
}

impl Settings {
    /// The Bot API, without a slash at the end.
    pub(crate) fn api(&self) -> String {
        self.api.as_deref().unwrap_or(DEFAULT_API).trim_end_matches('/').to_owned()
    }

    /// How long a poll waits.
    pub(crate) fn poll(&self) -> Result<Duration, ToolError> {
        let seconds = self.poll_seconds.unwrap_or(DEFAULT_POLL_SECONDS);
        if !(1..=MAX_POLL_SECONDS).contains(&seconds) {
            return Err(ToolError::new(format!(
                "config: poll_seconds is a number from 1 to {MAX_POLL_SECONDS}, not {seconds}"
            )));
        }
        Ok(Duration::from_secs(seconds))
    }
}
