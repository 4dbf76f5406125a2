//! Where the running supervisor's socket is.

use std::path::{Path, PathBuf};

use talon_supervisor::host::SOCKET_NAME;

use crate::failure::Failure;
use crate::global::Global;
use crate::local::configuration;

/// The environment variable for the socket, like `--socket`.
const SOCKET_VARIABLE: &str = "TALON_HOST_SOCKET";
/// The environment variable for the configuration file, like `--config`.
const CONFIG_VARIABLE: &str = "TALON_CONFIG";
/// The runtime directory of the system service.
const SYSTEM_RUNTIME_DIR: &str = "/run/talon";

/// The socket of the supervisor that a client verb asks. It is looked for when it is needed, because some
/// verbs end before that.
#[derive(Debug)]
pub(crate) struct HostSocket<'g> {
    global: &'g Global,
}

impl<'g> HostSocket<'g> {
    pub(crate) fn new(global: &'g Global) -> Self {
        Self { global }
    }

    /// The socket to connect to: `--socket`, the environment, the configuration's runtime directory, or else
    /// that of the system service.
    ///
    /// A configuration that this user cannot read (it may hold credentials) is ignored unless it was named
    /// explicitly: the defaults apply then.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.global.socket {
            return Ok(path.clone());
        }
        if let Some(path) = named_by(SOCKET_VARIABLE) {
            return Ok(path);
        }
        let own = match configuration::load_runtime_dir(&configuration::load_options(self.global)) {
            Ok(directory) => Some(directory),
            Err(failure) if self.global.config.is_some() || named_by(CONFIG_VARIABLE).is_some() => {
                return Err(failure);
            }
            Err(_) => None,
        };
        Ok(choose(own.as_deref(), Path::new(SYSTEM_RUNTIME_DIR)))
    }

    /// The options that say where it is.
    pub(crate) fn global(&self) -> &Global {
        self.global
    }

    /// Whether the socket was named explicitly.
    pub(crate) fn is_named(&self) -> bool {
        self.global.socket.is_some() || named_by(SOCKET_VARIABLE).is_some()
    }
}

fn named_by(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn choose(own: Option<&Path>, system: &Path) -> PathBuf {
    let candidates: Vec<PathBuf> = own.into_iter().chain([system]).map(|dir| dir.join(SOCKET_NAME)).collect();
    let existing = candidates.iter().find(|path| path.exists());
    existing.unwrap_or(&candidates[0]).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_directory_comes_first_and_is_named_when_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (own, system) = (dir.path().join("own"), dir.path().join("system"));
        for path in [&own, &system] {
            std::fs::create_dir(path).unwrap();
        }
        assert_eq!(choose(Some(&own), &system), own.join(SOCKET_NAME));
        std::fs::write(system.join(SOCKET_NAME), "").unwrap();
        assert_eq!(choose(Some(&own), &system), system.join(SOCKET_NAME));
        std::fs::write(own.join(SOCKET_NAME), "").unwrap();
        assert_eq!(choose(Some(&own), &system), own.join(SOCKET_NAME));
        assert_eq!(choose(None, &system), system.join(SOCKET_NAME));
    }
}
