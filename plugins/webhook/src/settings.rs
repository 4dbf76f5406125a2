//! The plugin's settings.

use std::time::Duration;

use serde::Deserialize;
use talon_sdk::ToolError;

/// How long a delivery takes at most unless `timeout_seconds` says otherwise: below the 30 s of an entry, so that the
/// answer of a slow server is a reason and not a deadline.
const DEFAULT_TIMEOUT_SECONDS: u64 = 20;
/// The longest `timeout_seconds`: the longest deadline of an entry.
const MAX_TIMEOUT_SECONDS: u64 = 300;

/// What an operator writes under `config`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// What is sent.
    pub(crate) format: Format,
    /// Where to, if the URL is no secret. Otherwise it is the credential `url`.
    pub(crate) url: Option<String>,
    /// How long a delivery may take, in seconds: 20 unless given, at most 300.
    pub(crate) timeout_seconds: Option<u64>,
    /// Whether `http` URLs may be used: what is sent can then be read on the way. Off by default, but for loopback addresses.
    pub(crate) allow_http: bool,
}

/// What is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// The whole event.
    #[default]
    Json,
    /// A text, as Slack, Mattermost, Rocket.Chat and others take it.
    Slack,
    /// A text, as Discord takes it.
    Discord,
}

impl Settings {
    /// The time limit of a delivery.
    pub(crate) fn timeout(&self) -> Result<Duration, ToolError> {
        let seconds = self.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
            return Err(ToolError::new(format!(
                "config: timeout_seconds is a number from 1 to {MAX_TIMEOUT_SECONDS}, not {seconds}"
            )));
        }
        Ok(Duration::from_secs(seconds))
    }
}
