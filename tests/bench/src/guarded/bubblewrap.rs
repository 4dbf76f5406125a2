//! Bubblewrap as a jail, with the usual options: all of its namespaces, the host's files read-only, and
//! private devices, processes and `/tmp`.

use std::path::Path;
use std::process::Command;

/// Where Debian's `bubblewrap` puts it.
pub(crate) const BWRAP: &str = "/usr/bin/bwrap";

/// Whether it is installed.
pub(crate) fn is_installed() -> bool {
    Path::new(BWRAP).exists()
}

/// Runs a program in it, with one writable directory of the host.
pub(super) fn wrap(program: &Path, writes: Option<&Path>) -> Command {
    let mut command = Command::new(BWRAP);
    command.args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"]);
    command.args(["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]);
    if let Some(directory) = writes {
        command.arg("--bind").args([directory, directory]);
    }
    if program.starts_with("/tmp") {
        // A program that was built there would be hidden.
        command.arg("--ro-bind").args([program, program]);
    }
    command.arg(program);
    command
}
