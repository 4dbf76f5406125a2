//! A shell's history file, followed for commands that are appended. It holds no exit codes.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use rustix::fs::OFlags;

use crate::limits::COMMAND_BYTES;

/// How much is read at once: what a person types between two looks. More is skipped to its end, as a file that
/// was put in the place of the old one is.
const READ_BYTES: u64 = 64 * 1024;

/// A history file.
#[derive(Debug)]
pub(crate) struct History {
    path: PathBuf,
    /// The file's inode, and how much of it was read.
    read: Option<(u64, u64)>,
}

impl History {
    /// Begins at its end: what was typed before is not looked at.
    pub(crate) fn new(path: PathBuf) -> Self {
        let read = path.metadata().ok().map(|file| (file.ino(), file.len()));
        Self { path, read }
    }

    /// The commands that were appended since the last look, redacted by whoever sends them.
    ///
    /// # Errors
    /// When the file is there and cannot be read, or is no regular file.
    pub(crate) fn appended(&mut self) -> io::Result<Vec<String>> {
        let flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
        let mut file = match File::options().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let (inode, length) = (metadata.ino(), metadata.len());
        let start = match self.read {
            Some((known, at)) if known == inode && at <= length => at,
            // Another file, or a shorter one: the shell wrote it anew, and what is in it was seen.
            _ => {
                self.read = Some((inode, length));
                return Ok(Vec::new());
            }
        };
        if length == start {
            return Ok(Vec::new());
        }
        let from = start.max(length.saturating_sub(READ_BYTES));
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(READ_BYTES.min(length - from)).read_to_end(&mut bytes)?;
        // A line that is not whole yet is read again.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let end = if whole == 0 && bytes.len() as u64 == READ_BYTES { bytes.len() } else { whole };
        self.read = Some((inode, from + end as u64));
        Ok(commands(&bytes[..end]))
    }
}

/// The commands of a piece of a history file, in the formats of bash, zsh and fish.
fn commands(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(&unmetafied(bytes)).into_owned();
    text.lines().filter_map(command).collect()
}

fn command(line: &str) -> Option<String> {
    // bash: the time of the next command. fish: the time and the paths of the last one.
    let is_time = line
        .strip_prefix('#')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
    if is_time || line.starts_with("  when: ") || line.starts_with("  paths:") || line.starts_with("    - ") {
        return None;
    }
    let command = line.strip_prefix("- cmd: ").or_else(|| zsh_extended(line)).unwrap_or(line);
    let is_sent =
        !command.trim().is_empty() && !command.starts_with([' ', '\t']) && command.len() <= COMMAND_BYTES;
    is_sent.then(|| command.to_owned())
}

/// `: 1700000000:0;make`
fn zsh_extended(line: &str) -> Option<&str> {
    let (times, command) = line.strip_prefix(": ")?.split_once(';')?;
    let is_times =
        times.split(':').all(|time| !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit()));
    is_times.then_some(command)
}

/// zsh writes some bytes as 0x83 and the byte xor 32, where UTF-8 has them too: in front of what it escapes
/// alone is it taken for that.
fn unmetafied(bytes: &[u8]) -> Vec<u8> {
    if std::str::from_utf8(bytes).is_ok() {
        return bytes.to_vec();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied();
    while let Some(byte) = rest.next() {
        match (byte, rest.clone().next()) {
            (0x83, Some(next)) => {
                out.push(next ^ 32);
                rest.next();
            }
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    // Promises: SHADOW-75
    #[test]
    fn appended_commands_of_three_shells_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        std::fs::write(&path, "old\n").unwrap();
        let mut history = History::new(path.clone());
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"#1700000000\nmake\n: 1700000000:0;cargo test\n- cmd: git push\n  when: 1700000000\n hidden\nhal").unwrap();
        assert_eq!(history.appended().unwrap(), ["make", "cargo test", "git push"]);
        file.write_all(b"f\n").unwrap();
        assert_eq!(history.appended().unwrap(), ["half"]);
        assert!(history.appended().unwrap().is_empty());
        // Written anew, as zsh does.
        std::fs::remove_file(&path).unwrap();
        assert!(history.appended().unwrap().is_empty());
        std::fs::write(&path, "old\nmake\n").unwrap();
        assert!(history.appended().unwrap().is_empty());
    }

    // Promises: SHADOW-75
    #[test]
    fn binary_and_endless_lines_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        std::fs::write(&path, "").unwrap();
        let mut history = History::new(path.clone());
        std::fs::write(&path, [0u8, 0xff, 0x83, 10].repeat(100_000)).unwrap();
        assert!(history.appended().is_ok());
        std::fs::write(&path, "x".repeat(300_000)).unwrap();
        while !history.appended().unwrap().is_empty() {}
        assert!(History::new(dir.path().to_owned()).appended().is_err());
    }

    proptest! {
        // Promises: SHADOW-75
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            for command in commands(&bytes) {
                prop_assert!(command.len() <= COMMAND_BYTES && !command.contains('\n'));
                prop_assert!(!command.starts_with(' '));
            }
        }
    }
}
