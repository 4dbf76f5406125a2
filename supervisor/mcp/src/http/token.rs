//! The bearer token of the HTTP server.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The shortest token: 128 bits as hexadecimal digits.
const MIN_CHARS: usize = 32;
/// The largest file.
const MAX_BYTES: u64 = 4096;
/// The random bytes of a new token.
const RANDOM_BYTES: usize = 32;

/// A token; its digest, so that comparing takes the same time wherever it differs.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token([u8; 32]);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(
        "the token has fewer than {MIN_CHARS} characters: use a random one, such as `openssl rand -hex 32` prints"
    )]
    Short,
    #[error("cannot use {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} may be read by others (its mode is {mode:04o}): chmod 600 it, and change the token", path.display())]
    Open { path: PathBuf, mode: u32 },
}

impl Token {
    /// A token as text.
    ///
    /// # Errors
    /// When it is short.
    pub(crate) fn new(text: &str) -> Result<Self, TokenError> {
        if text.chars().count() < MIN_CHARS {
            return Err(TokenError::Short);
        }
        Ok(Self::of(text))
    }

    /// The token in a file; one that does not exist is made, with a random token, for its owner alone.
    ///
    /// # Errors
    /// When it cannot be read or made, or others may read it.
    pub(crate) fn from_file(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::File { path: path.to_owned(), source };
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => {
                let mut bytes = [0; RANDOM_BYTES];
                getrandom::fill(&mut bytes).map_err(|error| failed(io::Error::other(error)))?;
                let text = hex::encode(bytes);
                file.write_all(format!("{text}\n").as_bytes()).map_err(failed)?;
                tracing::info!("made a token in {}", path.display());
                Self::new(&text)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let file = File::open(path).map_err(failed)?;
                let mode = file.metadata().map_err(failed)?.mode() & 0o7777;
                if mode & 0o077 != 0 {
                    return Err(TokenError::Open { path: path.to_owned(), mode });
                }
                let mut text = String::new();
                file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
                Self::new(text.trim())
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether this text is the token.
    pub(crate) fn is(&self, text: &str) -> bool {
        *self == Self::of(text)
    }

    fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_made_once_and_is_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let made = Token::from_file(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(Token::from_file(&path).unwrap() == made);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(made.is(text.trim()) && !made.is("x"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Token::from_file(&path), Err(TokenError::Open { mode: 0o644, .. })));
        assert!(matches!(Token::new("short"), Err(TokenError::Short)));
    }
}
