//! Where the configuration is, and how it is read.

use std::path::{Path, PathBuf};

use super::{Config, File};

/// The longest configuration file. 256 KiB: it has a page.
const FILE_BYTES: u64 = 256 * 1024;

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("neither XDG_CONFIG_HOME nor HOME is set; name the configuration with --config")]
    NoHome,
    #[error("cannot read {}: {error}; see docs/shadow.md for what belongs into it", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{} has more than {FILE_BYTES} bytes; it is a page of YAML", path.display())]
    TooLong { path: PathBuf },
    #[error("{}: {message}", path.display())]
    Parse { path: PathBuf, message: String },
}

/// `$XDG_CONFIG_HOME/talon/watch.yaml`, or below `~/.config`.
pub(crate) fn default_path() -> Result<PathBuf, ConfigError> {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = match named {
        Some(directory) => directory,
        None => home().ok_or(ConfigError::NoHome)?.join(".config"),
    };
    Ok(directory.join("talon/watch.yaml"))
}

/// Reads and checks the form of a configuration; paths that begin with `~/` are made absolute.
pub(crate) fn load(path: &Path) -> Result<Config, ConfigError> {
    let read = |error| ConfigError::Read { path: path.to_owned(), error };
    let size = std::fs::metadata(path).map_err(read)?.len();
    if size > FILE_BYTES {
        return Err(ConfigError::TooLong { path: path.to_owned() });
    }
    let text = std::fs::read_to_string(path).map_err(read)?;
    parse(&text, home().as_deref()).map_err(|message| ConfigError::Parse { path: path.to_owned(), message })
}

/// See [`load`].
pub(super) fn parse(text: &str, home: Option<&Path>) -> Result<Config, String> {
    if text.trim().is_empty() {
        return Ok(Config::default());
    }
    let File { shadow: mut config } = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let expand = |path: &mut PathBuf| match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => *path = home.join(rest),
        (Ok(_), None) | (Err(_), _) => (),
    };
    config.watchers.filesystem.paths.iter_mut().for_each(expand);
    config.watchers.shell.history_file.iter_mut().for_each(expand);
    config.checkers.iter_mut().map(|checker| &mut checker.directory).for_each(expand);
    Ok(config)
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute())
}
