//! Reads and writes the files by which the kernel controls cgroups.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Written to `cgroup.procs`, moves the writing process with all its threads.
pub(crate) const WRITING_PROCESS: &str = "0";

/// Writes to an existing kernel file, in one write, since each write is one command.
pub(super) fn write(file: &Path, text: &str) -> io::Result<()> {
    let file = File::options().write(true).open(file)?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

/// The value of a key in one of the kernel's flat keyed files.
pub(super) fn keyed_value(file: &Path, name: &str) -> Option<u64> {
    value_of(&fs::read_to_string(file).ok()?, name)
}

pub(super) fn value_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}
