//! What a configuration depends on besides its file: environment variables, user, and current directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use talon_plugin_config::document::yaml::MAX_TEXT_BYTES;

use super::regular_file::{self, OpenError};

/// Why a credential of the service manager cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialError {
    #[error("that is no name of one")]
    BadName,
    #[error("the service manager passed none ($CREDENTIALS_DIRECTORY)")]
    NoDirectory,
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The process's environment and identity, as one value, so that loading a configuration is a pure function.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The environment variables. Names that are not UTF-8 are left out; none of ours is.
    pub env: BTreeMap<String, OsString>,
    /// Our effective uid.
    pub uid: u32,
    /// Our home directory, if the environment or the user database names one.
    pub home: Option<PathBuf>,
    /// Where relative paths from the environment and from flags start.
    pub cwd: PathBuf,
    /// Whether plugins get separate uids ([`Environment::assigns_uids`]).
    pub assigns_uids: bool,
}

/// A directory, and the variable that it comes from, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultPath {
    /// The directory, absolute.
    pub path: PathBuf,
    /// The environment variable that it comes from.
    pub variable: Option<&'static str>,
}

/// The paths that depend on the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultPaths {
    /// The default of `runtime_dir`.
    pub runtime_dir: DefaultPath,
    /// The default of `state.data_dir`.
    pub data_dir: DefaultPath,
    /// Where the config file is looked for when neither a flag nor `TALON_CONFIG` names one.
    pub config_file: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let env: BTreeMap<_, _> =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
        let uid = nix::unistd::Uid::effective();
        let home = env
            .get("HOME")
            .filter(|home| !home.is_empty())
            .map(PathBuf::from)
            .or_else(|| nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.dir));
        // Without a current directory relative paths start at the root, and fail there by name.
        let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Self { env, uid: uid.as_raw(), home, cwd, assigns_uids: Self::assigns_uids() }
    }

    /// Whether this process starts plugins under other uids: root always intends to, and missing privileges
    /// are reported; another user does if it has the capabilities, as the service's user has.
    #[must_use]
    pub fn assigns_uids() -> bool {
        nix::unistd::Uid::effective().is_root() || talon_jail::can_assign_uids()
    }

    /// Whether the process runs as root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// A variable that is not empty.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsString> {
        self.env.get(name).filter(|value| !value.is_empty())
    }

    /// The service manager's credential of this name (`LoadCredential=`): a file in `$CREDENTIALS_DIRECTORY`,
    /// without its final line break.
    pub(crate) fn credential(&self, name: &str) -> Result<String, CredentialError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(CredentialError::BadName);
        }
        let dir = self.var("CREDENTIALS_DIRECTORY").ok_or(CredentialError::NoDirectory)?;
        let file = regular_file::open(&self.cwd.join(dir).join(name))?;
        let mut text = String::new();
        // A text that is one byte too long is rejected later, with all texts.
        let limit = MAX_TEXT_BYTES as u64 + 1;
        file.take(limit).read_to_string(&mut text).map_err(OpenError::Io)?;
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
        Ok(text)
    }

    /// A directory from a variable. systemd may set several, joined by colons; the first is ours.
    fn directory(&self, variable: &'static str) -> Option<DefaultPath> {
        let value = self.var(variable)?;
        let text = value.to_string_lossy();
        let first = text.split(':').next().filter(|first| !first.is_empty())?;
        Some(DefaultPath { path: self.cwd.join(first), variable: Some(variable) })
    }

    /// The service manager's directory for logs.
    #[must_use]
    pub fn logs_dir(&self) -> Option<PathBuf> {
        self.directory("LOGS_DIRECTORY").map(|place| place.path)
    }

    /// The paths that depend on the environment.
    #[must_use]
    pub fn default_paths(&self) -> DefaultPaths {
        let plain = |path: PathBuf| DefaultPath { path, variable: None };
        let runtime_dir = self.directory("RUNTIME_DIRECTORY").unwrap_or_else(|| {
            if self.is_root() {
                return plain("/run/talon".into());
            }
            match self.directory("XDG_RUNTIME_DIR") {
                Some(place) => DefaultPath { path: place.path.join("talon"), ..place },
                None => plain(format!("/tmp/talon-{}", self.uid).into()),
            }
        });
        let data_dir = self
            .var("OPENTALON_DATA_DIR")
            .map(|dir| DefaultPath { path: self.cwd.join(dir), variable: Some("OPENTALON_DATA_DIR") })
            .or_else(|| self.directory("STATE_DIRECTORY"))
            .unwrap_or_else(|| match &self.home {
                Some(home) if !self.is_root() => plain(home.join(".talon")),
                _ => plain("/var/lib/talon".into()),
            });
        DefaultPaths { runtime_dir, data_dir, config_file: self.config_file() }
    }

    fn config_file(&self) -> Option<PathBuf> {
        if self.is_root() {
            return Some("/etc/talon/talon.yaml".into());
        }
        let config_home = match self.var("XDG_CONFIG_HOME").map(Path::new) {
            Some(dir) if dir.is_absolute() => dir.to_owned(),
            _ => self.home.as_ref()?.join(".config"),
        };
        Some(config_home.join("talon/talon.yaml"))
    }
}
