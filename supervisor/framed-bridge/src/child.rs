//! The plugin's program: a child process in the same jail.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::handshake::{self, HandshakeLineError, MAX_LINE_BYTES, MAX_STRAY_LINES};
use crate::logging;

/// How long it may take to end after SIGINT before it is killed, as in its original host.
const GRACE: Duration = Duration::from_secs(5);
/// How long its last output may take to arrive once it has ended. The output is already in a pipe; this passes only if
/// a child process of the program holds the other end.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest line of its output that is passed on whole, which is as long as a host accepts; longer ones are split.
const MAX_PIECE_BYTES: u64 = 8 << 10;
/// How many directory names are tried. Under a supervisor the first is free.
const MAX_DIRECTORIES: u32 = 1000;

/// Variables for this process that would mislead the program: the handshake between a host and a go-plugin program.
const BRIDGE_PREFIXES: [&str; 2] = ["PLUGIN_", "TALON_PLUGIN_"];
/// Likewise: the inherited socket, and the log level. The variables for state and for the egress proxy stay.
const BRIDGE_VARIABLES: [&str; 2] = ["TALON_LISTEN_FD", "TALON_LOG"];

/// Why the program could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// No directory for its files.
    #[error("no directory can be made below {} for it: {source}", below.display())]
    SocketDir {
        /// Where.
        below: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be executed.
    #[error("{} cannot be started: {source}; check that it is there and may be executed", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The thread that reads its output cannot be started.
    #[error("a thread cannot be started: {0}; raise its limit on processes")]
    Thread(#[source] io::Error),
}

/// Why it named no socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// Its handshake line is invalid.
    #[error(transparent)]
    Line(#[from] HandshakeLineError),
    /// A line without an end.
    #[error(
        "it printed more than {MAX_LINE_BYTES} bytes without a line end before its handshake; let it print the handshake line first"
    )]
    TooLong,
    /// Too many other lines.
    #[error(
        "it printed more than {MAX_STRAY_LINES} lines before its handshake; let it print the handshake line first, and anything else to standard error"
    )]
    TooManyLines,
    /// Its output ended.
    #[error(
        "it closed its standard output before its handshake; it prints one handshake line and keeps its output open"
    )]
    Closed,
}

/// A running program.
pub(crate) struct Program {
    child: Child,
    name: PathBuf,
    /// Closed when all of its output was passed on.
    drained: oneshot::Receiver<()>,
    socket_dir: SocketDir,
}

/// Receives the result of its handshake line.
pub(crate) type HandshakeReceiver = oneshot::Receiver<Result<PathBuf, HandshakeError>>;

/// Starts it. Dropping the returned program kills it.
pub(crate) fn start(program: &OsStr, args: &[OsString]) -> Result<(Program, HandshakeReceiver), StartError> {
    let place = SocketDir::create(&std::env::temp_dir())?;
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_bridge_variable(name)) {
        command.env_remove(name);
    }
    command.env("TMPDIR", &place.0);
    // A signal for us also goes to our process group; we decide when the program ends: after its calls.
    command.process_group(0);
    let name = PathBuf::from(program);
    let failed = |source| StartError::Start { program: name.clone(), source };
    let mut child = command.spawn().map_err(failed)?;
    let stdout = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
    let stdout = ChildStdout::from(stdout.into_owned_fd().map_err(failed)?);
    let (found, line) = oneshot::channel();
    let (done, drained) = oneshot::channel::<()>();
    // A separate thread, because standard error is a pipe and writing to it may block.
    thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || {
            let _done = done;
            forward_output(stdout, found);
        })
        .map_err(StartError::Thread)?;
    Ok((Program { child, name, drained, socket_dir: place }, line))
}

fn is_bridge_variable(name: &OsStr) -> bool {
    let name = name.as_bytes();
    BRIDGE_VARIABLES.iter().any(|own| name == own.as_bytes())
        || BRIDGE_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

impl Program {
    /// The path it was started by.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Waits until it ends, and a moment for its last output.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        let _ = timeout(OUTPUT_DRAIN_TIMEOUT, &mut self.drained).await;
        Ok(status)
    }

    /// Kills a program that cannot be used.
    pub(crate) async fn kill(mut self) {
        // It fails if the program has ended already.
        let _ = self.child.kill().await;
        let _ = timeout(OUTPUT_DRAIN_TIMEOUT, &mut self.drained).await;
    }

    /// Ends it as its original host did: SIGINT, a grace period, SIGKILL. SIGINT goes to its whole group, since a shell
    /// in front of the program would not pass it on. Its directory is removed with it.
    pub(crate) async fn stop(mut self) {
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // It has not been reaped, so the pid is still valid; if it has ended already, that is fine.
            let _ = kill_process_group(pid, Signal::INT);
        }
        if timeout(GRACE, self.child.wait()).await.is_err() {
            logging::warn(format_args!("its program did not end within {GRACE:?} of SIGINT and is killed"));
            let _ = self.child.kill().await;
        }
        drop(self.socket_dir);
    }
}

/// A private directory, removed with its content.
struct SocketDir(PathBuf);

impl SocketDir {
    /// Under the shortest free name, because a socket's path is limited.
    fn create(below: &Path) -> Result<Self, StartError> {
        let mut last = io::ErrorKind::AlreadyExists.into();
        for number in 0..MAX_DIRECTORIES {
            let path = below.join(number.to_string());
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    last = error;
                    break;
                }
            }
        }
        Err(StartError::SocketDir { below: below.to_owned(), source: last })
    }
}

impl Drop for SocketDir {
    fn drop(&mut self) {
        // In a jail it is removed with everything else, and elsewhere the error cannot be handled.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads its output to the end: parses it up to the handshake line, and passes everything else to standard error.
fn forward_output(stdout: impl Read, found: oneshot::Sender<Result<PathBuf, HandshakeError>>) {
    let mut stdout = BufReader::new(stdout);
    let line = handshake(&mut stdout);
    // If the receiver is gone, the rest still has to be read.
    let _ = found.send(line);
    while let Some(piece) = read_line(&mut stdout, MAX_PIECE_BYTES) {
        forward(&piece);
    }
}

fn handshake(stdout: &mut impl io::BufRead) -> Result<PathBuf, HandshakeError> {
    for _ in 0..=MAX_STRAY_LINES {
        // One more byte than a line may have, to detect a longer one.
        let limit = MAX_LINE_BYTES as u64 + 1;
        let line = read_line(stdout, limit).ok_or(HandshakeError::Closed)?;
        if line.len() > MAX_LINE_BYTES {
            forward(&line);
            return Err(HandshakeError::TooLong);
        }
        if let Some(found) = handshake::parse(&String::from_utf8_lossy(&line)) {
            return Ok(found?);
        }
        forward(&line);
    }
    Err(HandshakeError::TooManyLines)
}

/// A line, or its next part up to the limit; `None` at the end.
fn read_line(stdout: &mut impl io::BufRead, limit: u64) -> Option<Vec<u8>> {
    let mut piece = Vec::new();
    let read = stdout.take(limit).read_until(b'\n', &mut piece);
    read.is_ok_and(|bytes| bytes > 0).then_some(piece)
}

fn forward(piece: &[u8]) {
    let mut piece = piece.to_vec();
    if piece.last() != Some(&b'\n') {
        piece.push(b'\n');
    }
    // In one write, so that our own lines do not mix with it. If there is no reader, there is nowhere to report the
    // error.
    let _ = io::stderr().write_all(&piece);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(output: &[u8]) -> Result<PathBuf, String> {
        let (found, mut line) = oneshot::channel();
        forward_output(output, found);
        line.try_recv().expect("it always says something").map_err(|error| error.to_string())
    }

    #[test]
    fn the_line_may_come_after_a_banner() {
        assert_eq!(line_of(b"hello\n\n1|unix|/x/y\nmore"), Ok("/x/y".into()));
        assert_eq!(line_of(b"1|unix|/x/y"), Ok("/x/y".into()));
        let banner = [b"x\n".repeat(MAX_STRAY_LINES), b"1|unix|/x\n".to_vec()].concat();
        assert_eq!(line_of(&banner), Ok("/x".into()));
    }

    #[test]
    fn what_is_no_line_is_given_up() {
        for (output, says) in [
            (Vec::new(), "closed its standard output"),
            (b"hello\n".to_vec(), "closed its standard output"),
            (b"x\n".repeat(MAX_STRAY_LINES + 1), "more than 64 lines"),
            (vec![b'x'; 1 << 20], "without a line end"),
            (b"1|unix|relative\n".to_vec(), "no absolute path"),
        ] {
            let said = line_of(&output).unwrap_err();
            assert!(said.contains(says), "{says:?} is not in {said:?}");
        }
    }

    #[test]
    fn a_hosts_words_to_this_process_are_not_passed_on() {
        for name in ["PLUGIN_MIN_PORT", "TALON_PLUGIN_NAME", "TALON_LISTEN_FD", "TALON_LOG"] {
            assert!(is_bridge_variable(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "HOME", "TALON_STATE_SOCKET", "TALON_PROXY_SOCKET", "MY_PLUGIN_X"] {
            assert!(!is_bridge_variable(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn its_place_is_short_its_own_and_goes() {
        let below = tempfile::tempdir().unwrap();
        let first = SocketDir::create(below.path()).unwrap();
        let second = SocketDir::create(below.path()).unwrap();
        assert_eq!((first.0.clone(), second.0.clone()), (below.path().join("0"), below.path().join("1")));
        std::fs::write(first.0.join("left"), "x").unwrap();
        let path = first.0.clone();
        drop(first);
        assert!(!path.exists() && second.0.exists());
        assert!(SocketDir::create(Path::new("/nonexistent")).is_err());
    }
}
