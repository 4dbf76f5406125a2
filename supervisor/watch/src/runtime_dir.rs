//! Where the shells' socket is: `$XDG_RUNTIME_DIR/talon/watch.sock`.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The name of the socket to which shells report.
const SHELL_SOCKET: &str = "watch.sock";

/// The name of the file with what shells show before a prompt.
const GHOSTS_FILE: &str = "ghosts";

/// The path of the file with what shells show before a prompt, beside their socket.
pub(crate) fn ghosts_file() -> Option<PathBuf> {
    Some(shell_socket()?.with_file_name(GHOSTS_FILE))
}

/// The path of the shells' socket; none without `XDG_RUNTIME_DIR`, since no other directory is this user's
/// alone for sure.
pub(crate) fn shell_socket() -> Option<PathBuf> {
    let directory =
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())?;
    Some(directory.join("talon").join(SHELL_SOCKET))
}

/// Makes the directory of a socket, for this user alone.
pub(crate) fn make_directory(socket: &Path) -> std::io::Result<()> {
    let Some(directory) = socket.parent() else { return Ok(()) };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Whether a file is this user's.
pub(crate) fn is_own(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|file| file.uid() == rustix::process::geteuid().as_raw())
}
