//! API keys: how they are sent, and which of several is used.

mod rotation;

use reqwest::header::HeaderValue;

pub(crate) use rotation::{KeyUnavailableError, Keys, Lease};
pub(crate) use talon_agent_settings::{FoundKey, HIDDEN, find_keys};
pub use talon_agent_settings::{KeyError, KeySource, Secret};

/// A secret that is sent as a header.
pub(crate) trait AsHeader {
    /// The header value, marked as sensitive. `None` if it contains characters that no header can.
    fn header(&self, prefix: &str) -> Option<HeaderValue>;
}

impl AsHeader for Secret {
    fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.reveal())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}
