//! The plugin's settings.

use std::time::Duration;

use serde::Deserialize;
use talon_sdk::ToolError;

/// How long a delivery takes at most unless set.
const DEFAULT_TIMEOUT_SECONDS: u64 = 20;
/// The longest `timeout_seconds`: the longest deadline of an entry.
const MAX_TIMEOUT_SECONDS: u64 = 300;
/// How old a signature may be unless set. 5 min: clocks differ by less, and who copied a message has no longer.
const DEFAULT_MAX_AGE_SECONDS: u64 = 300;
/// The longest `max_age_seconds`.
const LONGEST_MAX_AGE_SECONDS: u64 = 3600;

/// What an operator writes under `config`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Where answers are posted to, if the URL is no secret. Otherwise it is the credential `url`.
    pub(crate) url: Option<String>,
    /// Whether `http` URLs may be used. Off by default, but for loopback addresses.
    pub(crate) allow_http: bool,
    /// How long a delivery may take, in seconds: 20 unless given, at most 300.
    pub(crate) timeout_seconds: Option<u64>,
    /// How old a signature may be, in seconds: 300 unless given, at most 3600.
    pub(crate) max_age_seconds: Option<u64>,
}

impl Settings {
    /// The time limit of a delivery.
    pub(crate) fn timeout(&self) -> Result<Duration, ToolError> {
        let seconds =
            within(self.timeout_seconds, DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS, "timeout_seconds")?;
        Ok(Duration::from_secs(seconds))
    }

    /// How old a signature may be, in seconds.
    pub(crate) fn max_age(&self) -> Result<u64, ToolError> {
        within(self.max_age_seconds, DEFAULT_MAX_AGE_SECONDS, LONGEST_MAX_AGE_SECONDS, "max_age_seconds")
    }
}

fn within(given: Option<u64>, usual: u64, most: u64, key: &str) -> Result<u64, ToolError> {
    let seconds = given.unwrap_or(usual);
    if (1..=most).contains(&seconds) {
        return Ok(seconds);
    }
    Err(ToolError::new(format!("config: {key} is a number from 1 to {most}, not {seconds}")))
}
