//! The log of a supervisor that runs as a child: a service manager's goes to the journal.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Only the owner may read it.
const PRIVATE_DIR: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;
/// Of the log's end a failure shows this much: the last error with its advice.
const SHOWN_BYTES: i64 = 2 << 10;

/// The log file, which begins anew with each supervisor.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
}

impl LogFile {
    /// Creates `talon/serve.log` in `$XDG_STATE_HOME`, or below `~/.local/state`.
    pub(super) fn create() -> Result<(Self, File), Failure> {
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let state = state.or_else(|| Some(std::env::home_dir()?.join(".local/state")));
        let dir = state.map(|dir| dir.join("talon")).ok_or_else(|| {
            Failure::failed("there is no home directory for the supervisor's log: set XDG_STATE_HOME, or start `talon serve`")
        })?;
        let path = dir.join("serve.log");
        let file = open(&dir, &path).map_err(|error| {
            Failure::failed(format!(
                "cannot write the supervisor's log {}: {error}; set XDG_STATE_HOME, or start `talon serve`",
                path.display()
            ))
        })?;
        Ok((Self { path }, file))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The end of the log, whole lines.
    pub(super) fn end(&self) -> String {
        read_end(&self.path).unwrap_or_default()
    }
}

fn open(dir: &Path, path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(PRIVATE_FILE);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(path)
}

fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length > SHOWN_BYTES.unsigned_abs() {
        file.seek(SeekFrom::End(-SHOWN_BYTES))?;
    }
    let mut bytes = Vec::new();
    file.take(SHOWN_BYTES.unsigned_abs()).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(match text.split_once('\n') {
        Some((_, rest)) if length > SHOWN_BYTES.unsigned_abs() => rest.to_owned(),
        _ => text.into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_log_the_last_lines_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serve.log");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(read_end(&path).unwrap(), "one\ntwo\n");
        std::fs::write(&path, format!("{}\nlast\n", "x".repeat(10_000))).unwrap();
        assert_eq!(read_end(&path).unwrap(), "last\n");
    }
}
