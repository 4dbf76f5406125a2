//! Bytes in the arguments and answers of storage backends: an envelope that no layer of the guard changes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Bytes, and their digest.
///
/// Both are base64url without padding. Its 64 characters spell no control syntax, so that the sanitizer leaves the envelope
/// as it is; the digest shows whether anything between the two ends did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StorageBytes {
    /// The bytes, as base64url without padding.
    pub data: String,
    /// Their SHA-256, as base64url without padding: 43 characters.
    pub sha256: String,
}

/// Why an envelope cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StorageBytesError {
    /// There is none.
    #[error("it is missing")]
    Missing,
    /// It has no base64url.
    #[error("it is not base64url without padding")]
    Encoding,
    /// It is too long.
    #[error("it has more than {0} bytes")]
    Length(usize),
    /// The digest is another one.
    #[error("its digest is one of other bytes")]
    Digest,
}

impl StorageBytes {
    /// Puts bytes into an envelope.
    #[must_use]
    pub fn seal(bytes: &[u8]) -> Self {
        Self { data: URL_SAFE_NO_PAD.encode(bytes), sha256: digest(bytes) }
    }

    /// Takes the bytes out, at most so many.
    ///
    /// # Errors
    /// [`StorageBytesError`]
    pub fn open(&self, most_bytes: usize) -> Result<Vec<u8>, StorageBytesError> {
        // Before anything is decoded: four characters are three bytes.
        if self.data.len() / 4 * 3 > most_bytes {
            return Err(StorageBytesError::Length(most_bytes));
        }
        let bytes = URL_SAFE_NO_PAD.decode(&self.data).map_err(|_| StorageBytesError::Encoding)?;
        if bytes.len() > most_bytes {
            return Err(StorageBytesError::Length(most_bytes));
        }
        if digest(&bytes) != self.sha256 {
            return Err(StorageBytesError::Digest);
        }
        Ok(bytes)
    }
}

fn digest(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use talon_sanitize::{FamilyCounts, Raw, Sanitizer, Settings};

    use super::*;

    #[test]
    fn an_envelope_holds_exactly_its_bytes() {
        let sealed = StorageBytes::seal(b"a\0\xff");
        assert_eq!(sealed.open(3), Ok(b"a\0\xff".to_vec()));
        assert_eq!(sealed.open(2), Err(StorageBytesError::Length(2)));
        let other = StorageBytes { data: StorageBytes::seal(b"b").data, ..sealed.clone() };
        assert_eq!(other.open(3), Err(StorageBytesError::Digest));
        let padded = StorageBytes { data: format!("{}=", sealed.data), ..sealed };
        assert_eq!(padded.open(9), Err(StorageBytesError::Encoding));
    }

    proptest! {
        // Promises: EXT-100
        #[test]
        fn the_sanitizer_leaves_an_envelope_byte_for_byte_alone(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..3000),
                // What the sanitizer looks for, as bytes.
                "(<\\|im_start\\|>|\\[plugin_output\\]|<tool_call>|\u{202e}|\u{1b}\\[2J|system:|[a-z ]){0,40}".prop_map(String::into_bytes),
            ],
        ) {
            let sanitizer = Sanitizer::new(&Settings::default()).expect("the defaults are good");
            let written = serde_json::to_string(&StorageBytes::seal(&bytes)).expect("JSON");
            let mut marks = FamilyCounts::default();
            let passed = sanitizer.sanitize(Raw::from(written.clone()), &mut marks);
            prop_assert_eq!(passed.as_str(), written.as_str());
            prop_assert_eq!(marks, FamilyCounts::default());
            let read: StorageBytes = serde_json::from_str(&written).expect("an envelope");
            prop_assert_eq!(read.open(bytes.len()), Ok(bytes));
        }
    }
}
