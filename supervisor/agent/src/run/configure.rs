//! Reads the configuration that the supervisor sends.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;

use talon_agent_settings::{BundleError, MAX_BUNDLE_BYTES, SettingsBundle};

/// Why a configuration was not read. Contains nothing of its content.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigReadError {
    #[error("no memory file came with the configuration")]
    Missing,
    #[error("the configuration's memory file cannot be read: {0}")]
    File(#[from] io::Error),
    #[error("the configuration has {found} bytes, and {said} were announced")]
    Length { found: usize, said: u64 },
    #[error(transparent)]
    Bad(#[from] BundleError),
}

/// Reads the descriptor that came with a `Configure`. Blocks, but only on memory.
pub(super) fn read_config(descriptor: Option<OwnedFd>, said: u64) -> Result<SettingsBundle, ConfigReadError> {
    let mut file = File::from(descriptor.ok_or(ConfigReadError::Missing)?);
    // A pipe could block, and a device might have no end.
    if !file.metadata()?.is_file() {
        return Err(ConfigReadError::File(io::Error::other("it is no file")));
    }
    if said > MAX_BUNDLE_BYTES as u64 {
        return Err(BundleError::TooLong(usize::try_from(said).unwrap_or(usize::MAX)).into());
    }
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(said + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != said {
        return Err(ConfigReadError::Length { found: bytes.len(), said });
    }
    Ok(SettingsBundle::from_bytes(&bytes)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(bytes: &[u8]) -> OwnedFd {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        file.into()
    }

    #[test]
    fn what_was_handed_over_is_read_whole_or_not_at_all() {
        let bytes = SettingsBundle::default().to_bytes().expect("bytes");
        let said = bytes.len() as u64;
        assert_eq!(read_config(Some(file(&bytes)), said).expect("read"), SettingsBundle::default());
        assert!(matches!(read_config(Some(file(&bytes)), said + 1), Err(ConfigReadError::Length { .. })));
        assert!(matches!(read_config(Some(file(&bytes)), said - 1), Err(ConfigReadError::Length { .. })));
        assert!(matches!(read_config(None, said), Err(ConfigReadError::Missing)));
        assert!(matches!(read_config(Some(file(b"{]")), 2), Err(ConfigReadError::Bad(_))));
        let too_long = read_config(Some(file(b"")), u64::MAX).expect_err("too long");
        assert!(matches!(too_long, ConfigReadError::Bad(BundleError::TooLong(_))), "{too_long}");
        let (pipe, _kept) = io::pipe().expect("a pipe");
        assert!(matches!(read_config(Some(pipe.into()), 2), Err(ConfigReadError::File(_))));
    }
}
