//! The digest that identifies an answer.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// SHA-256 of an answer as it came off the wire, before any change. Displayed in hexadecimal.
///
/// It is computed on first use, because not every host uses it: at two gigabytes a second, with the
/// processor's SHA instructions, it is among the most expensive steps of an answer. Until it is computed,
/// dropped or cloned it holds the message, which is immutable. `Debug` shows nothing of the message.
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
    /// The digest of these bytes, computed now.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from(<[u8; 32]>::from(Sha256::digest(bytes)))
    }

    /// The digest of this message, computed on first use.
    #[must_use]
    #[inline]
    pub fn of_message(message: Bytes) -> Self {
        Self { taken: OnceLock::new(), message }
    }

    /// The 32 bytes of the digest.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        self.taken.get_or_init(|| Sha256::digest(&self.message).into())
    }
}

impl From<[u8; 32]> for Digest {
    /// A digest that was computed before.
    fn from(bytes: [u8; 32]) -> Self {
        Self { taken: bytes.into(), message: Bytes::new() }
    }
}

/// The clone is computed and holds no message: reports that are kept for long must not keep messages alive.
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
        // In place: an iterator of characters would take longer than anything else in a log line.
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
