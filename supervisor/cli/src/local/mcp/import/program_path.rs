//! Finds the programs of this machine.

use std::path::{Path, PathBuf};

/// Finds a program by its path, or by its name in PATH.
pub(super) fn find(command: &str) -> Option<PathBuf> {
    let executable = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(|path| path.is_absolute() && executable(path));
    }
    // Prefer the system's directories, which every plugin sees.
    let own = ["/usr/bin", "/usr/local/bin", "/bin"].into_iter().map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = own.chain(std::env::split_paths(&path).filter(|dir| dir.is_absolute()));
    all.map(|dir| dir.join(command)).find(|path| executable(path))
}
