//! Counts what the kernel holds for a tree and shows in no process's status, where no cgroup counts it: the
//! buffers of sockets, and locks on byte ranges of files.
//!
//! What else a program could fill the kernel with is refused without a cgroup: see
//! `profile/extra_filters.rs`.

use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, pread, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

/// How many sockets are not counted. 32: more than an ordinary plugin has, so that its idle sockets do not
/// take room from its limit; their buffers can hold 13 MiB together.
const UNCOUNTED_SOCKETS: u64 = 32;

/// How many times its default buffer size a socket can hold at most. 2: a message is accepted while the
/// buffer is not full, and can be as long as the buffer. A program without a cgroup cannot enlarge a buffer.
const BUFFERS_PER_SOCKET: u64 = 2;

/// The default buffer size of sockets where the kernel does not say: that of all its builds.
const BUFFER_BYTES: u64 = 212_992;

/// The most locks on byte ranges that a tree may hold; above that it is killed. 20,000: a thousand times what
/// programs with databases in files hold, and 5 MiB of kernel memory. A cgroup counts the memory instead,
/// without this limit.
pub(super) const LOCKS_MAX: u64 = 20_000;

/// The most lines of `/proc/locks` that are read; whole-file locks have lines too, and descriptors bound
/// those.
const LOCK_LINES_MAX: usize = 200_000;

/// How much is read of `/proc/net/sockstat`. It has 150 bytes.
const SOCKSTAT_MAX_BYTES: usize = 1024;

/// Counts the buffers of all sockets in the program's network namespace, at their upper bound. The kernel
/// counts sockets that are on their way to another process, and closed ones whose data was not read.
#[derive(Debug)]
pub(super) struct SocketBuffers {
    sockstat: OwnedFd,
    bytes_per_socket: u64,
    /// How many are not counted.
    uncounted: u64,
}

impl SocketBuffers {
    /// Opens the counter of our own network namespace, which must be the program's alone, but for so many
    /// listening sockets of the supervisor's.
    pub(super) fn open(proc: &OwnedFd, listeners: u64) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let sockstat = openat(proc, "self/net/sockstat", flags, Mode::empty())?;
        let buffers = Self {
            sockstat,
            bytes_per_socket: BUFFERS_PER_SOCKET * default_buffer_bytes(),
            uncounted: UNCOUNTED_SOCKETS.saturating_add(listeners),
        };
        buffers.sockets().map(|_| buffers)
    }

    /// The most that they can hold now.
    pub(super) fn max_bytes(&self) -> Result<u64, Errno> {
        Ok(self.sockets()?.saturating_sub(self.uncounted).saturating_mul(self.bytes_per_socket))
    }

    fn sockets(&self) -> Result<u64, Errno> {
        let mut text = [0; SOCKSTAT_MAX_BYTES];
        let length = retry_on_intr(|| pread(&self.sockstat, &mut text, 0))?;
        parse_sockstat(&text[..length]).ok_or(Errno::INVAL)
    }
}

/// `sockets: used 16`, the first line.
fn parse_sockstat(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.lines().find_map(|line| line.strip_prefix("sockets: used "))?.trim().parse().ok()
}

/// Limits the buffers of TCP sockets in our own network namespace to those of all other sockets. The kernel
/// enlarges them as it needs to, to 10 MiB a socket.
pub(super) fn limit_tcp_buffers() -> io::Result<()> {
    let largest = default_buffer_bytes();
    for (file, least, usual) in [("tcp_rmem", 4096, 131_072), ("tcp_wmem", 4096, 16_384)] {
        std::fs::write(format!("/proc/sys/net/ipv4/{file}"), format!("{least} {usual} {largest}"))?;
    }
    Ok(())
}

/// The size of a new socket's buffer. As the kernel counts it: with its own overhead.
fn default_buffer_bytes() -> u64 {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .and_then(sockopt::socket_send_buffer_size)
        .map_or(BUFFER_BYTES, |bytes| bytes as u64)
}

/// How many locks on byte ranges the processes of a pid namespace hold, by its `/proc`. Stops counting above
/// [`LOCKS_MAX`].
pub(super) fn byte_range_locks(proc: &OwnedFd) -> io::Result<u64> {
    match openat(proc, "locks", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(locks) => count_locks(BufReader::with_capacity(64 << 10, File::from(locks))),
        // A kernel without file locks.
        Err(Errno::NOENT) => Ok(0),
        Err(errno) => Err(errno.into()),
    }
}

/// Lines are `1: POSIX  ADVISORY  WRITE 4711 00:2a:17 0 EOF`, and with `->` before the kind for one that waits. The
/// kernel shows only locks of the namespace's processes, and those of open files (`OFDLCK`) to all.
fn count_locks(lines: impl io::BufRead) -> io::Result<u64> {
    let mut count = 0;
    for line in lines.split(b'\n').take(LOCK_LINES_MAX) {
        let line = line?;
        let mut words = line.split(|byte| *byte == b' ').skip(1).filter(|word| *word != b"->");
        if words.next() == Some(b"POSIX") {
            count += 1;
            if count > LOCKS_MAX {
                break;
            }
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_sockets_is_read() {
        let text = b"sockets: used 16\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 303\nUDP: inuse 0 mem 0\n";
        assert_eq!(parse_sockstat(text), Some(16));
        for broken in [&b""[..], b"sockets: used\n", b"sockets: used x\n", b"\xff"] {
            assert_eq!(parse_sockstat(broken), None);
        }
    }

    #[test]
    fn this_process_has_sockets_of_the_default_size() {
        let proc: OwnedFd = File::open("/proc").unwrap().into();
        let buffers = SocketBuffers::open(&proc, 0).unwrap();
        let _pair = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(buffers.sockets().unwrap() >= 2);
        assert!(buffers.bytes_per_socket >= 2 * 4096, "{}", buffers.bytes_per_socket);
        assert!(SocketBuffers::open(&File::open("/usr").unwrap().into(), 0).is_err());
    }

    #[test]
    fn locks_of_byte_ranges_count_and_those_of_whole_files_do_not() {
        let text = "1: POSIX  ADVISORY  WRITE 12 00:2a:17 0 0\n1: -> POSIX  ADVISORY  WRITE 13 00:2a:17 0 0\n\
                    2: FLOCK  ADVISORY  WRITE 12 00:2a:18 0 EOF\n3: OFDLCK ADVISORY  READ -1 00:06:4 0 EOF\n";
        assert_eq!(count_locks(text.as_bytes()).unwrap(), 2);
        let many = "7: POSIX  ADVISORY  READ 12 00:2a:17 0 0\n".repeat(LOCKS_MAX as usize * 2);
        assert_eq!(count_locks(many.as_bytes()).unwrap(), LOCKS_MAX + 1);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(byte_range_locks(&File::open(empty.path()).unwrap().into()).unwrap(), 0);
    }
}
