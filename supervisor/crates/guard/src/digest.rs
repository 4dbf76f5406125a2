//! The digest by which an answer can be found again.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// SHA-256 of an answer as it came off the wire, before anybody touched it. Shown in hexadecimal.
///
/// It is worked out when somebody first looks at it, which not every host does: at two gigabytes a second, the instructions
/// that processors have for it, it is among the dearest things done to an answer. Until it is dropped or cloned it holds
/// on to the message, which nobody can change meanwhile; of the message it shows nothing.
///
/// ```
/// use talon_guard::Digest;
///
/// let digest = Digest::of(b"");
/// assert_eq!(digest.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
/// ```
pub struct Digest {
    taken: OnceLock<[u8; 32]>,
    message: Bytes,
}

impl Digest {
    /// The digest of these bytes, worked out now.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from(<[u8; 32]>::from(Sha256::digest(bytes)))
    }

    /// The digest of this message, worked out when somebody looks at it.
    #[must_use]
    pub fn of_message(message: Bytes) -> Self {
        Self { taken: OnceLock::new(), message }
    }

    /// Its 32 bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        self.taken.get_or_init(|| Sha256::digest(&self.message).into())
    }
}

impl From<[u8; 32]> for Digest {
    /// One that was worked out before.
    fn from(bytes: [u8; 32]) -> Self {
        Self { taken: bytes.into(), message: Bytes::new() }
    }
}

/// The clone is worked out and holds on to nothing: what keeps reports for long keeps no messages by it.
impl Clone for Digest {
    fn clone(&self) -> Self {
        Self::from(*self.bytes())
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Digest {}

impl PartialOrd for Digest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Digest {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In place: by way of an iterator of characters it takes longer than anything else in a line of a log.
        let mut text = [0; 64];
        hex::encode_to_slice(self.bytes(), &mut text).map_err(|_| fmt::Error)?;
        f.pad(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_whenever_it_is_worked_out() {
        let message = Bytes::from(b"an answer".to_vec());
        let (now, later) = (Digest::of(&message), Digest::of_message(message));
        assert!(later.taken.get().is_none());
        assert_eq!(later.to_string(), now.to_string());
        assert_eq!(later, now);
    }

    #[test]
    fn a_clone_holds_on_to_nothing() {
        let message = Bytes::from(b"an answer".to_vec());
        let digest = Digest::of_message(message.clone());
        let clone = digest.clone();
        assert!(!message.is_unique());
        drop(digest);
        assert!(message.is_unique());
        assert_eq!(clone, Digest::of(&message));
    }

    #[test]
    fn it_shows_nothing_of_the_message() {
        let shown = format!("{:?}", Digest::of_message(Bytes::from_static(b"hunter2")));
        assert!(!shown.contains("hunter2") && shown.len() == "Digest()".len() + 64, "{shown}");
    }
}
