//! For whom a request counts at host and agent: `gw:ISSUER/SUBJECT`. The prefix keeps it apart from the names of this machine's users,
//! which never have a colon.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use talon_listen::delegation::{is_plain_in_subject, is_subject};

/// The prefix of all subjects.
const PREFIX: &str = "gw:";
/// The longest subject: what the agent's store has for a sender.
pub(crate) const MAX_SUBJECT_BYTES: usize = 256;

/// For whom a request counts. Visible ASCII, so that it can stand in a header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject(Arc<str>);

/// Why a text is no subject.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SubjectError {
    /// It is not `gw:ISSUER/SUBJECT`.
    #[error("a subject is gw:ISSUER/SUBJECT, in letters, digits and . _ ~ @ + : = % -")]
    Form,
    /// It is too long.
    #[error("a subject has at most {MAX_SUBJECT_BYTES} bytes")]
    TooLong,
}

impl Subject {
    /// The subject of this issuer. Characters that have no place in one are written as `%XX`, so that two different texts never
    /// become one subject.
    ///
    /// # Errors
    /// [`SubjectError`] if one of both is empty, or if it is too long.
    pub fn of(issuer: &str, subject: &str) -> Result<Self, SubjectError> {
        if issuer.is_empty() || subject.is_empty() {
            return Err(SubjectError::Form);
        }
        let mut text = PREFIX.to_owned();
        escape(issuer, &mut text);
        text.push('/');
        escape(subject, &mut text);
        if text.len() > MAX_SUBJECT_BYTES { Err(SubjectError::TooLong) } else { Ok(Self(text.into())) }
    }

    /// Reads a subject.
    ///
    /// # Errors
    /// [`SubjectError`]
    pub fn parse(text: &str) -> Result<Self, SubjectError> {
        if text.len() > MAX_SUBJECT_BYTES {
            return Err(SubjectError::TooLong);
        }
        if is_subject(text) { Ok(Self(text.into())) } else { Err(SubjectError::Form) }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn escape(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if is_plain_in_subject(byte) {
            into.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bare_name_is_no_subject() {
        for bare in ["root", "gw:", "gw:a", "gw:/a", "gw:a/", "gw:a b/c", "gw:a/b/c", "gw:a/b\n"] {
            assert_eq!(Subject::parse(bare), Err(SubjectError::Form), "{bare:?}");
        }
        assert_eq!(Subject::of("telegram", "12 3").unwrap().as_str(), "gw:telegram/12%203");
        assert_eq!(Subject::of("a", &"x".repeat(300)), Err(SubjectError::TooLong));
    }

    proptest! {
        #[test]
        fn two_texts_never_become_one_subject(
            one in (".{1,20}", ".{1,20}"),
            other in (".{1,20}", ".{1,20}"),
        ) {
            let subject = |(issuer, subject): &(String, String)| Subject::of(issuer, subject).ok();
            if let (Some(a), Some(b)) = (subject(&one), subject(&other)) {
                prop_assert_eq!(a == b, one == other);
                prop_assert_eq!(Subject::parse(a.as_str()), Ok(a));
            }
        }
    }
}
