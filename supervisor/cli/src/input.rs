//! Input of a verb: a file, or stdin, up to a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Where an input comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InputSource<'p> {
    Stdin,
    File(&'p Path),
}

/// Why an input was not read. What to do about it differs from verb to verb.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    #[error("cannot open {name}: {error}")]
    Open { name: String, error: io::Error },
    #[error("cannot read {name}: {error}")]
    Read { name: String, error: io::Error },
    #[error("{name} is too large")]
    TooLarge { name: String },
}

impl<'p> InputSource<'p> {
    /// The file; `-` is stdin.
    pub(crate) fn of(path: &'p Path) -> Self {
        if path == Path::new("-") { Self::Stdin } else { Self::File(path) }
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "stdin".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Reads all of it. The bound keeps a wrong file, such as a device, from filling the memory.
    pub(crate) fn read(&self, max_bytes: u64) -> Result<Vec<u8>, InputError> {
        match self {
            Self::Stdin => self.read_from(io::stdin().lock(), max_bytes),
            Self::File(path) => {
                let opened =
                    File::open(path).map_err(|error| InputError::Open { name: self.name(), error })?;
                self.read_from(opened, max_bytes)
            }
        }
    }

    fn read_from(&self, from: impl Read, max_bytes: u64) -> Result<Vec<u8>, InputError> {
        let mut bytes = Vec::new();
        from.take(max_bytes + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| InputError::Read { name: self.name(), error })?;
        if bytes.len() as u64 > max_bytes {
            return Err(InputError::TooLarge { name: self.name() });
        }
        Ok(bytes)
    }
}
