//! `plugin.yaml`: the manifest of a plugin directory.

use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::origin::KeyPath;
use crate::document::problem::Problems;
use crate::document::shape::Shape;
use crate::document::{self, Findings};
use crate::entry::PluginEntry;
use crate::spec::{LifecycleSettings, MANIFEST_FILE, SYSTEM_PATH};

/// The largest manifest: 256 KiB, nearly all of it for `config`.
const MAX_MANIFEST_BYTES: u64 = 256 << 10;

/// The content of a `plugin.yaml`: the keys of `plugins.tools.plugins.<name>` in the config file, without
/// those that only an operator may set. The same rules apply. Variables are not expanded, because the
/// environment is the operator's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// The plugin's name, if it is not the directory's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The plugin.
    #[serde(flatten)]
    pub plugin: PluginEntry,
}

/// Why a manifest is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is too large.
    #[error("{} is larger than {} KiB: make it smaller", .0.display(), MAX_MANIFEST_BYTES >> 10)]
    TooLarge(PathBuf),
    /// It has invalid content. Each problem names its file and line.
    #[error("{}", in_one_line(.0))]
    Malformed(Problems),
}

/// The problems in one line, for status output.
fn in_one_line(problems: &Problems) -> String {
    /// Enough to see what is wrong; the others appear once these are fixed.
    const SHOWN: usize = 3;
    let all = problems.problems();
    let mut shown: Vec<String> = all.iter().take(SHOWN).map(ToString::to_string).collect();
    if all.len() > SHOWN {
        shown.push(format!("and {} more", all.len() - SHOWN));
    }
    shown.join("; ")
}

impl Manifest {
    /// Reads the manifest of a directory. `wider` holds the lifecycle defaults.
    ///
    /// # Errors
    /// [`ManifestError`], with file and line.
    pub fn read(directory: &Path, wider: &LifecycleSettings) -> Result<Self, ManifestError> {
        let path = directory.join(MANIFEST_FILE);
        let failed = |source: std::io::Error| ManifestError::Io { path: path.clone(), source };
        let flags = rustix::fs::OFlags::RDONLY
            | rustix::fs::OFlags::NOFOLLOW
            | rustix::fs::OFlags::NONBLOCK
            | rustix::fs::OFlags::CLOEXEC;
        let fd = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).map_err(|e| failed(e.into()))?;
        let mut text = String::new();
        std::fs::File::from(fd).take(MAX_MANIFEST_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLarge(path));
        }
        Self::parse(&text, &path, wider).map_err(ManifestError::Malformed)
    }

    /// Parses a manifest's text; `path` is used in messages.
    pub(crate) fn parse(text: &str, path: &Path, wider: &LifecycleSettings) -> Result<Self, Problems> {
        static SHAPE: LazyLock<Shape> = LazyLock::new(Shape::of::<Manifest>);
        let (manifest, origins) = document::read::<Self>(text, &SHAPE, path)?;
        let mut found = Findings::new(&origins);
        manifest.plugin.check(wider, &KeyPath::top(), &mut found);
        if manifest.plugin.url.is_some() {
            let help = "name the plugin with its url under plugins.tools.plugins in the config file";
            found.problem(
                &KeyPath::top().key("url"),
                "is a way into the network, which only the operator gives",
                help,
            );
        }
        if let Some(descriptor) = &manifest.plugin.descriptor
            && !descriptor.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            let help = "write its path in the plugin's directory, without ..";
            found.problem(&KeyPath::top().key("descriptor"), "leaves the plugin's directory", help);
        }
        match Problems::new(found.problems) {
            Some(problems) => Err(problems),
            None => Ok(manifest),
        }
    }

    /// The path of the program.
    ///
    /// # Errors
    /// [`CommandError`], if the program is not found or lies outside the directory.
    pub fn program(&self, directory: &Path) -> Result<PathBuf, CommandError> {
        match &self.plugin.command {
            Some(command) => resolve_command(command, directory),
            None => Err(CommandError::Missing),
        }
    }
}

/// Why the command of a manifest cannot be used. The messages end with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// There is none.
    #[error("{MANIFEST_FILE}: it names no command: say which program it is")]
    Missing,
    /// It has a `..`.
    #[error(
        "{MANIFEST_FILE}: command {command:?} leaves the directory: keep the program in it, or write an absolute path"
    )]
    Outside {
        /// The command.
        command: String,
    },
    /// It is neither in the directory nor a command of the system.
    #[error(
        "{MANIFEST_FILE}: command {command:?} is neither in {} nor in {}: correct it, or install it",
        directory.display(),
        SYSTEM_PATH.join(", ")
    )]
    NotFound {
        /// The command.
        command: String,
        /// The plugin's directory.
        directory: PathBuf,
    },
}

/// Resolves a manifest's command.
fn resolve_command(path: &Path, directory: &Path) -> Result<PathBuf, CommandError> {
    let command = path.display().to_string();
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    if path.components().any(|c| matches!(c, std::path::Component::ParentDir)) {
        return Err(CommandError::Outside { command });
    }
    // Built from its components, so that "./run" and "run" are the same path.
    let inside: PathBuf = directory.join(
        path.components().filter(|c| matches!(c, std::path::Component::Normal(_))).collect::<PathBuf>(),
    );
    if command.contains('/') || inside.symlink_metadata().is_ok() {
        return Ok(inside);
    }
    let system =
        SYSTEM_PATH.iter().map(|dir| Path::new(dir).join(path)).find(|candidate| candidate.is_file());
    system.ok_or_else(|| CommandError::NotFound { command, directory: directory.to_owned() })
}
