//! The connection to the journal.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use super::entry;
use crate::log::line::Line;

/// The journal's socket.
const SOCKET: &str = "/run/systemd/journal/socket";
/// The environment variable with another socket path, for a journal that is not the machine's own.
const SOCKET_VARIABLE: &str = "TALON_JOURNAL_SOCKET";

/// Sends entries to the journal.
pub(crate) struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Journal {
    /// The journal of this machine, or the one named by the variable. Whether it is reachable shows when a
    /// line is sent.
    pub(crate) fn from_env() -> io::Result<Self> {
        Self::at(std::env::var_os(SOCKET_VARIABLE).map_or_else(|| SOCKET.into(), PathBuf::from))
    }

    pub(crate) fn at(path: PathBuf) -> io::Result<Self> {
        Ok(Self { socket: UnixDatagram::unbound()?, path })
    }

    /// Blocks while the journal accepts nothing: only the writer thread may call this.
    ///
    /// The path is resolved for each entry, so that a journal which was restarted or started later gets them.
    pub(crate) fn send(&self, line: &Line) -> io::Result<()> {
        self.socket.send_to(&entry(line), &self.path).map(drop)
    }
}

/// Whether stderr is connected to the journal. systemd sets a variable with the device and inode of the
/// socket that it connects; if stderr was replaced since, they differ.
pub(crate) fn stderr_is_the_journal() -> bool {
    let Some(named) = std::env::var("JOURNAL_STREAM").ok() else { return false };
    let Ok(stat) = rustix::fs::fstat(io::stderr().as_fd()) else { return false };
    is_stream(&named, stat.st_dev, stat.st_ino)
}

fn is_stream(named: &str, device: u64, inode: u64) -> bool {
    named
        .split_once(':')
        .is_some_and(|(of_device, of_inode)| of_device.parse() == Ok(device) && of_inode.parse() == Ok(inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: TRACE-4
    #[test]
    fn only_the_very_stream_is_the_journal() {
        assert!(is_stream("8:123", 8, 123));
        for named in ["8:124", "9:123", "8", "", "8:123:1", "x:123"] {
            assert!(!is_stream(named, 8, 123), "{named}");
        }
    }
}
