//! Where `talon-state` is.

use std::path::{Path, PathBuf};

/// Its file name.
const NAME: &str = "talon-state";
/// Where packages put programs that nobody calls by hand, seen from the directory of `talon`.
const PACKAGED: [&str; 2] = ["../libexec/talon", "../lib/talon"];

/// The program is nowhere to be found.
#[derive(Debug, thiserror::Error)]
#[error(
    "the program {NAME} is missing, which keeps state: it is neither beside {} nor in ../libexec/talon or ../lib/talon; install it \
     there, set state.program, or run without state (state.engine: off)",
    beside.display()
)]
pub struct NoProgram {
    beside: PathBuf,
}

/// The program that the configuration names, or the one that was installed with this `talon`.
///
/// # Errors
/// [`NoProgram`] says where it was looked for.
pub fn find(configured: Option<&Path>) -> Result<PathBuf, NoProgram> {
    if let Some(program) = configured {
        return Ok(program.to_owned());
    }
    // The name of an executable that was replaced while it runs ends with a remark of the kernel's; its directory does not.
    let own = std::env::current_exe().unwrap_or_default();
    let dir = own.parent().unwrap_or(Path::new("/"));
    let places = [dir.to_owned()].into_iter().chain(PACKAGED.iter().map(|place| dir.join(place)));
    let found = places.map(|dir| dir.join(NAME)).find(|path| path.is_file());
    // Without the dots, as messages and checks of its directories want it.
    found.and_then(|path| path.canonicalize().ok()).ok_or(NoProgram { beside: own })
}
