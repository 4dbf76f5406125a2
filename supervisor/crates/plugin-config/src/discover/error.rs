//! Why something that looks like a plugin is none.

use std::io;
use std::path::PathBuf;

use super::check::CheckError;
use super::manifest::{CommandError, ManifestError};
use crate::files::TreeError;
use crate::name::PluginNameError;
use crate::spec::MANIFEST_FILE;

/// Why something that looks like a plugin is none. The messages end with what to do next.
#[derive(Debug, thiserror::Error)]
pub(super) enum DiscoverError {
    #[error("it has both a command and a url: leave one of them out")]
    CommandAndUrl,
    #[error("it has neither a command nor a url: say what runs")]
    NothingToRun,
    #[error("cannot resolve it: {0}; correct the path")]
    Unresolved(#[source] io::Error),
    #[error("cannot resolve it: {0}; remove it")]
    DanglingEntry(#[source] io::Error),
    #[error("it is a directory without {MANIFEST_FILE}: add one, or name the program in it")]
    NoManifest,
    #[error("its name is not UTF-8: rename it")]
    NameNotUtf8,
    #[error("plugin_dir {} does not exist: create it, or change plugins.tools.plugin_dir", .0.display())]
    NoPluginDir(PathBuf),
    #[error("cannot read plugin_dir {}: {source}; correct its permissions, or change plugins.tools.plugin_dir", dir.display())]
    UnreadablePluginDir { dir: PathBuf, source: io::Error },
    #[error("plugin_dir {} cannot be trusted: {problem}", dir.display())]
    UntrustedPluginDir { dir: PathBuf, problem: String },
    #[error("plugin_dir {} holds more than {most} entries: name a directory that holds plugins only", dir.display())]
    TooManyEntries { dir: PathBuf, most: usize },
    #[error("cannot look at {}: {source}; correct its permissions, or remove it", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} cannot be trusted: {problem}", path.display())]
    Untrusted { path: PathBuf, problem: String },
    #[error(transparent)]
    Name(#[from] PluginNameError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// Why the files of a plugin have no digest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FingerprintError {
    /// Its program cannot be read.
    #[error("cannot read {}: {source}; correct its permissions", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its directory cannot be read.
    #[error(transparent)]
    Directory(#[from] TreeError),
}
