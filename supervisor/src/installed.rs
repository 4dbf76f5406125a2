//! Where the other programs are that are installed with this one.

use std::path::{Path, PathBuf};

/// Where packages put programs that nobody calls by hand, seen from the directory of `talon`.
const PACKAGED: [&str; 2] = ["../libexec/talon", "../lib/talon"];

/// A program is nowhere to be found.
#[derive(Debug, thiserror::Error)]
#[error(
    "the program {name} is missing: it is neither beside {} nor in {} or {}; install it there",
    beside.display(), PACKAGED[0], PACKAGED[1]
)]
pub struct NotInstalled {
    name: &'static str,
    beside: PathBuf,
}

/// Looks for one of our programs beside this one, and where packages put them.
///
/// # Errors
/// [`NotInstalled`] says where it was looked for.
pub(crate) fn find(name: &'static str) -> Result<PathBuf, NotInstalled> {
    // The name of an executable that was replaced while it runs ends with a remark of the kernel's; its directory does not.
    let own = std::env::current_exe().unwrap_or_default();
    let dir = own.parent().unwrap_or(Path::new("/"));
    let places = [dir.to_owned()].into_iter().chain(PACKAGED.iter().map(|place| dir.join(place)));
    let found = places.map(|dir| dir.join(name)).find(|path| path.is_file());
    // Without the dots, as messages and checks of its directories want it.
    found.and_then(|path| path.canonicalize().ok()).ok_or(NotInstalled { name, beside: own })
}
