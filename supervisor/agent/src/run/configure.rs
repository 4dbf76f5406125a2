//! Reads the configuration that the supervisor sends.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;

use talon_agent_settings::{BundleError, MAX_BUNDLE_BYTES, SettingsBundle};
use talon_extensions::{Extensions, ParseExtensionsError};
use talon_proto::agent::Configure;

use crate::agent::Configuration;

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
    #[error(transparent)]
    Extensions(#[from] ParseExtensionsError),
}

/// How long the two documents in the memory file are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lengths {
    settings: u64,
    extensions: u64,
}

impl Lengths {
    pub(super) fn of(configure: &Configure) -> Self {
        Self { settings: configure.settings_bytes, extensions: configure.extensions_bytes }
    }
}

/// Reads the descriptor that came with a `Configure`. Blocks, but only on memory.
pub(super) fn read_config(
    descriptor: Option<OwnedFd>,
    said: Lengths,
) -> Result<Configuration, ConfigReadError> {
    let mut file = File::from(descriptor.ok_or(ConfigReadError::Missing)?);
    // A pipe could block, and a device might have no end.
    if !file.metadata()?.is_file() {
        return Err(ConfigReadError::File(io::Error::other("it is no file")));
    }
    let all = said.settings.saturating_add(said.extensions);
    if all > MAX_BUNDLE_BYTES as u64 {
        return Err(BundleError::TooLong(usize::try_from(all).unwrap_or(usize::MAX)).into());
    }
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(all + 1).read_to_end(&mut bytes)?;
    let length = || ConfigReadError::Length { found: bytes.len(), said: all };
    if bytes.len() as u64 != all {
        return Err(length());
    }
    let settings = usize::try_from(said.settings).map_err(|_| length())?;
    let (settings, extensions) = bytes.split_at_checked(settings).ok_or_else(length)?;
    Ok(Configuration {
        bundle: SettingsBundle::from_bytes(settings)?,
        extensions: Extensions::from_bytes(extensions)?,
    })
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

    fn said(settings: u64, extensions: u64) -> Lengths {
        Lengths { settings, extensions }
    }

    #[test]
    fn what_was_handed_over_is_read_whole_or_not_at_all() {
        let bytes = SettingsBundle::default().to_bytes().expect("bytes");
        let whole = bytes.len() as u64;
        assert_eq!(read_config(Some(file(&bytes)), said(whole, 0)).expect("read"), Configuration::default());
        for wrong in [said(whole + 1, 0), said(whole - 1, 0)] {
            assert!(matches!(read_config(Some(file(&bytes)), wrong), Err(ConfigReadError::Length { .. })));
        }
        assert!(matches!(read_config(None, said(whole, 0)), Err(ConfigReadError::Missing)));
        assert!(matches!(read_config(Some(file(b"{]")), said(2, 0)), Err(ConfigReadError::Bad(_))));
        for endless in [said(u64::MAX, 0), said(1, u64::MAX)] {
            let too_long = read_config(Some(file(b"")), endless).expect_err("too long");
            assert!(matches!(too_long, ConfigReadError::Bad(BundleError::TooLong(_))), "{too_long}");
        }
        let (pipe, _kept) = io::pipe().expect("a pipe");
        assert!(matches!(read_config(Some(pipe.into()), said(2, 0)), Err(ConfigReadError::File(_))));
    }

    #[test]
    fn extensions_stand_after_the_settings() {
        let settings = SettingsBundle::default().to_bytes().expect("bytes");
        let extensions = Extensions {
            filters: vec![talon_extensions::HookEntry::new("spam.check")],
            ..Extensions::default()
        };
        let encoded = extensions.to_bytes();
        let both = [settings.clone(), encoded.clone()].concat();
        let lengths = said(settings.len() as u64, encoded.len() as u64);
        let read = read_config(Some(file(&both)), lengths).expect("read");
        assert_eq!(read, Configuration { bundle: SettingsBundle::default(), extensions });
        let shifted = said(lengths.settings - 1, lengths.extensions + 1);
        assert!(read_config(Some(file(&both)), shifted).is_err());
    }
}
