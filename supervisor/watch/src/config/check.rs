//! Whether a configuration can be used: directories are there, are this user's, and are not whole machines.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::Config;

/// What is wrong with a configuration, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error(
        "shadow.enabled is true and shadow.watchers.filesystem.paths is empty: list the directories to watch, or nothing is watched"
    )]
    NoPaths,
    #[error("{} is not absolute: write the whole path, or begin it with ~/", .0.display())]
    Relative(PathBuf),
    #[error("{} cannot be watched: {why}", path.display())]
    Missing { path: PathBuf, why: String },
    #[error("{} is no directory; list the directory that holds it", .0.display())]
    NoDirectory(PathBuf),
    #[error("{} belongs to another user (uid {owner}): a watcher looks at its own user's work alone", path.display())]
    OtherUser { path: PathBuf, owner: u32 },
    #[error("{} is a whole file system tree; list the directories of your work", .0.display())]
    TooWide(PathBuf),
    #[error("shadow.watchers.filesystem.ignore: {0}")]
    Glob(String),
    #[error("a checker of {} has an empty command; name a program", .0.display())]
    EmptyCommand(PathBuf),
    #[error("the checker of {} runs outside of the watched directories; list it in shadow.watchers.filesystem.paths", .0.display())]
    UnwatchedChecker(PathBuf),
    #[error("shadow.watchers.filesystem.{0} has to be at least 1")]
    Zero(&'static str),
}

/// Directories that hold more than one person's work.
const TOO_WIDE: [&str; 8] = ["/", "/home", "/usr", "/proc", "/sys", "/dev", "/etc", "/var"];

/// The directories to watch, canonical and each once; those inside of others are left out, as they are watched
/// with them. And everything that is wrong.
pub(crate) fn checked(config: &Config) -> (Vec<PathBuf>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut roots: Vec<PathBuf> = Vec::new();
    let filesystem = &config.watchers.filesystem;
    if config.enabled && filesystem.paths.is_empty() {
        problems.push(Problem::NoPaths);
    }
    for path in &filesystem.paths {
        match directory(path) {
            Ok(root) => roots.push(root),
            Err(problem) => problems.push(problem),
        }
    }
    roots.sort();
    roots.dedup();
    let all = roots.clone();
    roots.retain(|root| !all.iter().any(|other| other != root && root.starts_with(other)));
    if let Err(error) = overrides(Path::new("/"), &filesystem.ignore) {
        problems.push(Problem::Glob(error.to_string()));
    }
    for (key, value) in [("max_files", filesystem.max_files), ("max_directories", filesystem.max_directories)]
    {
        if value == 0 {
            problems.push(Problem::Zero(key));
        }
    }
    for checker in &config.checkers {
        if checker.command.first().is_none_or(String::is_empty) {
            problems.push(Problem::EmptyCommand(checker.directory.clone()));
        }
        match directory(&checker.directory) {
            Ok(place) if !roots.iter().any(|root| place.starts_with(root)) => {
                problems.push(Problem::UnwatchedChecker(place));
            }
            Ok(_) => (),
            Err(problem) => problems.push(problem),
        }
        if let Err(error) = overrides(Path::new("/"), &checker.files) {
            problems.push(Problem::Glob(error.to_string()));
        }
    }
    (roots, problems)
}

fn directory(path: &Path) -> Result<PathBuf, Problem> {
    if !path.is_absolute() {
        return Err(Problem::Relative(path.to_owned()));
    }
    let missing = |error: std::io::Error| Problem::Missing { path: path.to_owned(), why: error.to_string() };
    let real = path.canonicalize().map_err(missing)?;
    if TOO_WIDE.iter().any(|wide| real == Path::new(wide)) {
        return Err(Problem::TooWide(real));
    }
    let metadata = real.metadata().map_err(missing)?;
    if !metadata.is_dir() {
        return Err(Problem::NoDirectory(real));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(Problem::OtherUser { path: real, owner: metadata.uid() });
    }
    Ok(real)
}

/// Globs of what is left out, in the form of the walker: there, a glob without `!` says what is kept.
pub(crate) fn overrides(
    root: &Path,
    ignore: &[String],
) -> Result<ignore::overrides::Override, ignore::Error> {
    let mut builder = ignore::overrides::OverrideBuilder::new(root);
    for glob in ignore {
        builder.add(&format!("!{glob}"))?;
    }
    builder.build()
}
