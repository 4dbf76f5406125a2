//! The plugin's settings.

use serde::Deserialize;

/// Where the Web API is.
const DEFAULT_API: &str = "https://slack.com/api";

/// What an operator writes under `config`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Where the Web API is, if it is not Slack's own.
    pub(crate) api: Option<String>,
    /// Whether `api`, and the WebSocket that it names, may be without TLS. Off by default, but for loopback addresses.
    pub(crate) allow_http: bool,
    /// Whether what is asked in a channel is answered in its thread. On by default.
    pub(crate) thread_replies: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { api: None, allow_http: false, thread_replies: true }
    }
}

impl Settings {
    /// The Web API, without a slash at the end.
    pub(crate) fn api(&self) -> String {
        self.api.as_deref().unwrap_or(DEFAULT_API).trim_end_matches('/').to_owned()
    }
}
