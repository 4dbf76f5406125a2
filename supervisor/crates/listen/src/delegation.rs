//! Requests that a service of the supervisor's own makes for others: each says for whom, in its metadata.
//!
//! The metadata counts on connections that the supervisor made and handed to that service, and on no other. There a request without
//! it is refused: it would count as the service's own, for nobody.

use std::sync::Arc;

use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

/// For whom a request is: `gw:ISSUER/SUBJECT`.
pub const SUBJECT: &str = "talon-subject";
/// From which channel it comes.
pub const CHANNEL: &str = "talon-channel";
/// The role that the service states: call, operate or admin.
pub const ROLE: &str = "talon-role";
/// The origin that the service states: person, model or program.
pub const ORIGIN: &str = "talon-origin";

/// The prefix of all subjects. No user's name has a colon, so none is a subject.
const PREFIX: &str = "gw:";
/// The longest subject: what a session's sender may have in the store.
pub const MAX_SUBJECT_BYTES: usize = 256;
/// The longest channel: a word such as `telegram`.
pub const MAX_CHANNEL_BYTES: usize = 64;

/// A role. A higher one includes the lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DelegatedRole {
    /// Its own sessions and calls.
    Call,
    /// Everybody's.
    Operate,
    /// Configuration, too.
    Admin,
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelegatedOrigin {
    /// A person.
    Person,
    /// A model.
    Model,
    /// A program.
    Program,
}

/// For whom a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// `gw:ISSUER/SUBJECT`
    pub subject: Arc<str>,
    /// The channel.
    pub channel: Arc<str>,
    /// The role, not above the ceiling.
    pub role: DelegatedRole,
    /// The origin.
    pub origin: DelegatedOrigin,
}

/// The metadata does not say for whom a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("on this connection each request says for whom it is: {name} is missing, stands twice or is none")]
pub struct DelegationError {
    name: &'static str,
}

impl From<DelegationError> for Status {
    fn from(error: DelegationError) -> Self {
        Self::new(Code::Unauthenticated, error.to_string())
    }
}

impl DelegatedRole {
    /// The role of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "call" => Some(Self::Call),
            "operate" => Some(Self::Operate),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }
}

impl Delegation {
    /// Reads it. The role is the lesser of the stated one and `ceiling`.
    ///
    /// # Errors
    /// [`DelegationError`] names the first entry that is missing or none.
    pub fn of(metadata: &MetadataMap, ceiling: DelegatedRole) -> Result<Self, DelegationError> {
        let one = |name: &'static str| {
            let mut values = metadata.get_all(name).iter();
            let value = values.next().and_then(|value| value.to_str().ok());
            value.filter(|_| values.next().is_none()).ok_or(DelegationError { name })
        };
        let subject = Some(one(SUBJECT)?).filter(|text| is_subject(text));
        let channel = Some(one(CHANNEL)?).filter(|text| is_channel(text));
        let origin = match one(ORIGIN)? {
            "person" => Some(DelegatedOrigin::Person),
            "model" => Some(DelegatedOrigin::Model),
            "program" => Some(DelegatedOrigin::Program),
            _ => None,
        };
        Ok(Self {
            subject: subject.ok_or(DelegationError { name: SUBJECT })?.into(),
            channel: channel.ok_or(DelegationError { name: CHANNEL })?.into(),
            role: DelegatedRole::parse(one(ROLE)?).ok_or(DelegationError { name: ROLE })?.min(ceiling),
            origin: origin.ok_or(DelegationError { name: ORIGIN })?,
        })
    }
}

/// Whether a byte stands for itself in a subject; others are written as `%XX`.
#[must_use]
pub fn is_plain_in_subject(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~@+:=-".contains(&byte)
}

/// Whether a text is `gw:ISSUER/SUBJECT`, in letters, digits and `. _ ~ @ + : = % -`, with one slash: no two texts mean the same
/// subject, and none needs escaping where it is shown.
#[must_use]
pub fn is_subject(text: &str) -> bool {
    let fits =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| is_plain_in_subject(byte) || byte == b'%');
    let parts = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('/'));
    text.len() <= MAX_SUBJECT_BYTES && parts.is_some_and(|(issuer, subject)| fits(issuer) && fits(subject))
}

/// Whether a text is a channel.
#[must_use]
pub fn is_channel(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    !text.is_empty() && text.len() <= MAX_CHANNEL_BYTES && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [(&str, &str); 4] =
        [(SUBJECT, "gw:telegram/42"), (CHANNEL, "telegram"), (ROLE, "admin"), (ORIGIN, "program")];

    fn metadata(pairs: &[(&'static str, &str)]) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        for (name, value) in pairs {
            metadata.append(*name, value.parse().unwrap());
        }
        metadata
    }

    // Promises: GW-12
    #[test]
    fn a_role_above_the_ceiling_is_the_ceiling() {
        for (ceiling, found) in [
            (DelegatedRole::Call, DelegatedRole::Call),
            (DelegatedRole::Operate, DelegatedRole::Operate),
            (DelegatedRole::Admin, DelegatedRole::Admin),
        ] {
            assert_eq!(Delegation::of(&metadata(&WHOLE), ceiling).unwrap().role, found);
        }
        let lower = metadata(&[WHOLE[0], WHOLE[1], (ROLE, "call"), WHOLE[3]]);
        assert_eq!(Delegation::of(&lower, DelegatedRole::Admin).unwrap().role, DelegatedRole::Call);
    }

    // Promises: GW-11
    #[test]
    fn what_is_missing_twice_or_none_is_refused_by_name() {
        for at in 0..WHOLE.len() {
            let (name, _) = WHOLE[at];
            let mut missing = WHOLE.to_vec();
            missing.remove(at);
            let twice = [&WHOLE[..], &[WHOLE[at]]].concat();
            for wrong in [missing, twice] {
                let error = Delegation::of(&metadata(&wrong), DelegatedRole::Admin).unwrap_err();
                assert_eq!(error, DelegationError { name });
            }
            let long = format!("gw:a/{}", "x".repeat(MAX_SUBJECT_BYTES));
            for none in [
                "",
                "root",
                "gw:",
                "gw:a",
                "gw:/b",
                "gw:a/b/c",
                "gw:a/b\"c",
                "gw:a/b c",
                "system",
                long.as_str(),
            ] {
                let mut wrong = WHOLE.to_vec();
                wrong[at].1 = none;
                // A word may be a channel.
                if name != CHANNEL || !is_channel(none) {
                    assert!(
                        Delegation::of(&metadata(&wrong), DelegatedRole::Admin).is_err(),
                        "{name} {none}"
                    );
                }
            }
        }
    }
}
