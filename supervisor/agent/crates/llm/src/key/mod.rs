//! Keys of providers: where they come from, and which of several is used.

mod rotation;
mod source;

use std::fmt;
use std::sync::Arc;

use reqwest::header::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) use rotation::{Keys, Lease, NoKey};
pub use source::{BadKey, KeySource};
pub(crate) use source::{Found, find};

/// What stands for a secret wherever one would be shown.
pub(crate) const HIDDEN: &str = "[hidden]";

/// A text that nobody is to see: a key, a header's value, a proxy's URL with a password. It goes to the provider and
/// nowhere else: shown or written as a value of the configuration it is `[hidden]`.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// As a header, which HTTP's library hides as well. `None` if it holds what no header can.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.reveal())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}
