//! Reads the text of a file: regular files alone, and a bounded part of them.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::limits::READ_BYTES;

/// Whoever has a zero byte in here is no text: git says the same.
const BINARY_PROBE: usize = 8000;

/// The beginning of a text file, at most [`READ_BYTES`]. None if it is gone, is no regular file, or no text.
///
/// Opening never waits: a FIFO that was put in the file's place is seen as what it is, and a link is not
/// followed.
pub(crate) fn read_text(path: &Path) -> io::Result<Option<String>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // ELOOP: a link. ENXIO: a socket.
        Err(error) if matches!(error.raw_os_error(), Some(40 | 6)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(READ_BYTES as u64).read_to_end(&mut bytes)?;
    if bytes[..bytes.len().min(BINARY_PROBE)].contains(&0) {
        return Ok(None);
    }
    Ok(Some(text_of(&bytes).into_owned()))
}

/// The text of bytes that should be text, without a byte order mark.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-68
    #[test]
    fn only_regular_text_files_are_read_and_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("text"), "\u{feff}hello").unwrap();
        std::fs::write(at("binary"), b"a\0b").unwrap();
        std::fs::write(at("large"), "x".repeat(READ_BYTES + 5)).unwrap();
        std::os::unix::fs::symlink(at("text"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(read_text(&at("text")).unwrap().as_deref(), Some("hello"));
        assert_eq!(read_text(&at("large")).unwrap().map(|text| text.len()), Some(READ_BYTES));
        for name in ["binary", "link", "loop", "fifo", "socket", "missing", "."] {
            assert_eq!(read_text(&at(name)).unwrap(), None, "{name}");
        }
    }
}
