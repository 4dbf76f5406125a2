//! What a configuration depends on besides its file: the environment, who we are, where we stand.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The process's environment and identity, as one value, so that loading a configuration is a plain function.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The environment. Names that are not UTF-8 are left out; nothing of ours has such a name.
    pub env: BTreeMap<String, OsString>,
    /// Our effective uid.
    pub uid: u32,
    /// Our home directory, if the environment or the user database names one.
    pub home: Option<PathBuf>,
    /// Where relative paths from the environment and from flags start.
    pub cwd: PathBuf,
}

/// A directory and, if a variable chose it, which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory, absolute.
    pub path: PathBuf,
    /// The environment variable that it comes from.
    pub variable: Option<&'static str>,
}

/// The directories that depend on the surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The default of `runtime_dir`.
    pub runtime_dir: Place,
    /// The default of `state.data_dir`.
    pub data_dir: Place,
    /// Where the config file is looked for when neither a flag nor `TALON_CONFIG` names one.
    pub config_file: Option<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
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
        Self { env, uid: uid.as_raw(), home, cwd }
    }

    /// Whether we are root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// A variable that is set to something.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsString> {
        self.env.get(name).filter(|value| !value.is_empty())
    }

    /// A directory from a variable. systemd may hand several, joined by colons; the first is ours.
    fn directory(&self, variable: &'static str) -> Option<Place> {
        let value = self.var(variable)?;
        let text = value.to_string_lossy();
        let first = text.split(':').next().filter(|first| !first.is_empty())?;
        Some(Place { path: self.cwd.join(first), variable: Some(variable) })
    }

    /// The directories that depend on us.
    #[must_use]
    pub fn places(&self) -> Places {
        let plain = |path: PathBuf| Place { path, variable: None };
        let runtime_dir = self.directory("RUNTIME_DIRECTORY").unwrap_or_else(|| {
            if self.is_root() {
                return plain("/run/talon".into());
            }
            match self.directory("XDG_RUNTIME_DIR") {
                Some(place) => Place { path: place.path.join("talon"), ..place },
                None => plain(format!("/tmp/talon-{}", self.uid).into()),
            }
        });
        let data_dir = self
            .var("OPENTALON_DATA_DIR")
            .map(|dir| Place { path: self.cwd.join(dir), variable: Some("OPENTALON_DATA_DIR") })
            .or_else(|| self.directory("STATE_DIRECTORY"))
            .unwrap_or_else(|| match &self.home {
                Some(home) if !self.is_root() => plain(home.join(".talon")),
                _ => plain("/var/lib/talon".into()),
            });
        Places { runtime_dir, data_dir, config_file: self.config_file() }
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
