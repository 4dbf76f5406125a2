//! API keys: how they are sent, and which of several is used.

mod rotation;

use reqwest::header::HeaderValue;

pub(crate) use rotation::{Keys, Lease, NoKey};
pub use talon_agent_settings::{BadKey, KeySource, Secret};
pub(crate) use talon_agent_settings::{Found, HIDDEN, find_keys};

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
