//! Bubblewrap, as it is given to programs that are to have a jail: all of its namespaces, the host's files read-only,
//! devices, processes and a `/tmp` of its own.

use std::path::Path;
use std::process::Command;

/// Where Debian's `bubblewrap` puts it.
pub(crate) const BWRAP: &str = "/usr/bin/bwrap";

/// Whether it is installed.
pub(crate) fn is_here() -> bool {
    Path::new(BWRAP).exists()
}

/// A program in it, which may write into one directory of the host's.
pub(super) fn around(program: &Path, writes: Option<&Path>) -> Command {
    let mut command = Command::new(BWRAP);
    command.args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"]);
    command.args(["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]);
    if let Some(directory) = writes {
        command.arg("--bind").args([directory, directory]);
    }
    if program.starts_with("/tmp") {
        // Built there, it would be hidden.
        command.arg("--ro-bind").args([program, program]);
    }
    command.arg(program);
    command
}
