//! Finds the other programs that are installed with `talon`.

use std::path::{Path, PathBuf};

/// Where packages install programs that users do not call directly, relative to the directory of `talon`.
const PACKAGED: [&str; 2] = ["../libexec/talon", "../lib/talon"];

/// A program was not found.
#[derive(Debug, thiserror::Error)]
#[error(
    "the program {name} is missing: it is neither beside {} nor in {} or {}; install it there",
    beside.display(), PACKAGED[0], PACKAGED[1]
)]
pub struct NotInstalledError {
    name: &'static str,
    beside: PathBuf,
}

/// The program that the configuration names, or the one of this name that is installed with `talon`.
///
/// # Errors
/// [`NotInstalledError`] states where it was searched.
pub(crate) fn configured_or_installed(
    configured: Option<&Path>,
    name: &'static str,
) -> Result<PathBuf, NotInstalledError> {
    configured.map_or_else(|| find(name), |program| Ok(program.to_owned()))
}

/// Looks for one of our programs beside this one, and where packages install them.
///
/// # Errors
/// [`NotInstalledError`] states where it was searched.
pub fn find(name: &'static str) -> Result<PathBuf, NotInstalledError> {
    // If the executable was replaced at runtime, the kernel appends a remark to its name, but not to its
    // directory.
    let own = std::env::current_exe().unwrap_or_default();
    let dir = own.parent().unwrap_or(Path::new("/"));
    let places = [dir.to_owned()].into_iter().chain(PACKAGED.iter().map(|place| dir.join(place)));
    let found = places.map(|dir| dir.join(name)).find(|path| path.is_file());
    // Canonical, for messages and for checks of its directories.
    found.and_then(|path| path.canonicalize().ok()).ok_or(NotInstalledError { name, beside: own })
}
