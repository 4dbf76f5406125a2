//! A secret as a client shows it: `talon_ID_SECRET`. The supervisor is asked by its id and the SHA-256 of the whole; the secret stays here.

use std::fmt;

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};
use sha2::{Digest as _, Sha256};

/// What all our secrets begin with, so that scanners for leaked ones find them.
const PREFIX: &str = "talon_";
/// The longest secret: an id of 12 and a secret of 43 letters, and some room.
const MAX_BYTES: usize = 128;

/// The header that writes of a browser's session carry, besides the cookie: another site can make a browser send the cookie, and cannot
/// read what stands here.
pub const SESSION_TOKEN: &str = "x-talon-session";

/// What a client showed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    id: String,
    digest: [u8; 32],
}

/// What a client showed is no credential.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the credential is none of ours: a token is talon_ID_SECRET, whole and without spaces")]
pub struct MalformedCredentialError;

impl Credential {
    /// Reads a secret.
    ///
    /// # Errors
    /// [`MalformedCredentialError`]
    pub fn parse(text: &str) -> Result<Self, MalformedCredentialError> {
        let fits = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let parts = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_'));
        match parts {
            Some((id, secret)) if text.len() <= MAX_BYTES && fits(id) && fits(&secret.replace('_', "-")) => {
                Ok(Self { id: id.to_owned(), digest: Sha256::digest(text).into() })
            }
            _ => Err(MalformedCredentialError),
        }
    }

    /// The bearer token of a request; `None` without one.
    ///
    /// # Errors
    /// [`MalformedCredentialError`], also for another scheme and for two headers.
    pub fn bearer(headers: &HeaderMap) -> Result<Option<Self>, MalformedCredentialError> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Ok(None) };
        let (None, Ok(text)) = (values.next(), value.to_str()) else { return Err(MalformedCredentialError) };
        let (scheme, token) = text.split_once(' ').ok_or(MalformedCredentialError)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(MalformedCredentialError);
        }
        Self::parse(token.trim()).map(Some)
    }

    /// The browser's session of a request; `None` without its cookie. A cookie of this name that is none of ours is no session: other
    /// servers of this host may set it.
    #[must_use]
    pub fn cookie(headers: &HeaderMap, port: u16) -> Option<Self> {
        let name = session_cookie(port);
        let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut found = texts.flat_map(|text| text.split(';')).filter_map(|pair| {
            let (key, value) = pair.trim().split_once('=')?;
            (key == name).then_some(value)
        });
        let value = found.next()?;
        // Two of them: somebody tries to put theirs beside ours.
        if found.next().is_some() { None } else { Self::parse(value).ok() }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The SHA-256 of the whole.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The value of the header [`SESSION_TOKEN`] that goes with a browser's session: derived from its secret, so that it needs no room.
    #[must_use]
    pub fn session_token(&self) -> String {
        let derived = Sha256::new().chain_update(b"session token").chain_update(self.digest).finalize();
        derived.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The name of the session's cookie: cookies know no ports, so the name has it.
#[must_use]
pub fn session_cookie(port: u16) -> String {
    format!("talon_session_{port}")
}

#[cfg(test)]
#[path = "credential_tests.rs"]
mod tests;
