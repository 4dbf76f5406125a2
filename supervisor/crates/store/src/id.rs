//! Validated names: a value of these types need not be checked again.

use std::fmt;
use std::str::FromStr;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use ulid::{Generator, Ulid};

use crate::invalid::InvalidError;
use crate::limits::{MAX_KEY_BYTES, MAX_PLUGIN_ID_BYTES};

/// A plugin's id: `[a-z0-9][a-z0-9-]{0,63}`. Safe as the name of a file, a socket or a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PluginId(String);

impl PluginId {
    /// Checks an id.
    ///
    /// # Errors
    /// [`InvalidError`], without the id itself, which may be long or contain anything.
    pub fn new(id: &str) -> Result<Self, InvalidError> {
        let fits = |byte: u8, first: bool| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || (byte == b'-' && !first)
        };
        let valid = !id.is_empty()
            && id.len() <= MAX_PLUGIN_ID_BYTES
            && id.bytes().enumerate().all(|(at, byte)| fits(byte, at == 0));
        if valid {
            return Ok(Self(id.to_owned()));
        }
        Err(InvalidError::new(
            "a plugin's id",
            format!(
                "must have 1 to {MAX_PLUGIN_ID_BYTES} of the characters a-z, 0-9 and -, and not begin with -"
            ),
        ))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A plugin's key: 1 to 512 bytes of any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

impl Key {
    /// Checks a key.
    ///
    /// # Errors
    /// [`InvalidError`].
    pub fn new(key: impl Into<String>) -> Result<Self, InvalidError> {
        let key = key.into();
        if key.is_empty() || key.len() > MAX_KEY_BYTES {
            let why = format!("must have 1 to {MAX_KEY_BYTES} bytes, not {}", key.len());
            return Err(InvalidError::new("a key", why));
        }
        Ok(Self(key))
    }

    /// The key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes, by which keys are ordered.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

macro_rules! checked_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidError;

            fn from_str(text: &str) -> Result<Self, InvalidError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidError;

            fn try_from(text: String) -> Result<Self, InvalidError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(checked: $name) -> Self {
                checked.0
            }
        }
    };
}

checked_text!(PluginId);
checked_text!(Key);

macro_rules! ulid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Ulid);

        impl $name {
            /// Generates an id, larger than all that this process has generated before.
            #[must_use]
            pub fn generate() -> Self {
                Self(next())
            }

            /// An id of 16 bytes, such as those of a digest: the same each time.
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid::from_bytes(bytes))
            }

            /// Parses the 26 characters of an id.
            ///
            /// # Errors
            /// [`InvalidError`] for anything but the canonical form, in capitals.
            pub fn new(text: &str) -> Result<Self, InvalidError> {
                // Ids are compared as texts elsewhere, so the other forms that ULIDs allow are refused.
                Ulid::from_string(text)
                    .ok()
                    .filter(|id| id.to_string() == text)
                    .map(Self)
                    .ok_or_else(|| InvalidError::new($what, "must be a ULID: 26 characters of 0-9 and A-Z"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidError;

            fn from_str(text: &str) -> Result<Self, InvalidError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidError;

            fn try_from(text: String) -> Result<Self, InvalidError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

ulid_id!(
    /// A session's id: a ULID, so that ids sort by their time of creation.
    SessionId,
    "a session's id"
);
ulid_id!(
    /// A memory's id: a ULID, so that ids sort by their time of creation.
    MemoryId,
    "a memory's id"
);

/// Monotonic, since random ids of one millisecond would sort randomly, and lists by id would not be by age.
fn next() -> Ulid {
    static GENERATOR: Mutex<Generator> = Mutex::new(Generator::new());
    let mut generator = GENERATOR.lock();
    // The 80 random bits practically never overflow. If they do, a random id is as unique, and only sorts
    // differently.
    generator.generate().unwrap_or_else(|_| Ulid::generate())
}
