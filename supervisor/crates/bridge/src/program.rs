//! A plugin's program with a handshake line: a child process in the same jail, which names a socket.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::{self, BufRead};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::output;
use crate::process::{self, ChildExit, EndStep};

/// The longest handshake line, in bytes. go-plugin's has a certificate of up to 1 KiB in it; a line with the
/// longest possible path has a thirtieth of it.
pub const MAX_LINE_BYTES: usize = 4 << 10;
/// The most lines before it, such as an interpreter's warnings, as everywhere in Talon.
pub const MAX_STRAY_LINES: usize = 64;
/// A unix socket's path with its terminating zero has 108 bytes.
pub const MAX_PATH_BYTES: usize = 107;
/// How many directory names are tried. Under a supervisor the first is free.
const MAX_DIRECTORIES: u32 = 1000;

/// Why the program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
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
pub enum HandshakeError<E: std::error::Error + 'static> {
    /// Its handshake line is invalid.
    #[error(transparent)]
    Line(E),
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
#[derive(Debug)]
pub struct Program {
    child: Child,
    name: PathBuf,
    /// Closed when all of its output was passed on.
    drained: oneshot::Receiver<()>,
    socket_dir: SocketDir,
}

/// Receives the result of its handshake line.
pub type HandshakeReceiver<E> = oneshot::Receiver<Result<PathBuf, HandshakeError<E>>>;

/// Reads one line of its output: the path of its socket, or why that cannot be read. `None`: it is no handshake
/// line, so the next one may be.
pub type ParseLine<E> = fn(&str) -> Option<Result<PathBuf, E>>;

/// Starts it, with the variables on top of the environment that programs behind a bridge have. `TMPDIR`, and the
/// variable `socket_dir`, name a private directory for its socket. Dropping the returned program kills it.
///
/// # Errors
/// [`StartError`]
pub fn start<E: std::error::Error + Send + 'static>(
    program: &OsStr,
    args: &[OsString],
    env: impl IntoIterator<Item = (OsString, OsString)>,
    socket_dir: Option<&str>,
    parse: ParseLine<E>,
) -> Result<(Program, HandshakeReceiver<E>), StartError> {
    let place = SocketDir::create(&std::env::temp_dir())?;
    let mut command = process::command(program, args);
    command.envs(env).env("TMPDIR", &place.0);
    if let Some(variable) = socket_dir {
        command.env(variable, &place.0);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let name = PathBuf::from(program);
    let failed = |source| StartError::Start { program: name.clone(), source };
    let mut child = command.spawn().map_err(failed)?;
    let stdout = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
    let (found, line) = oneshot::channel();
    let stdout = stdout.into_owned_fd().map_err(failed)?;
    let drained = output::spawn_reader("output", stdout, move |stdout| forward_output(stdout, found, parse))
        .map_err(StartError::Thread)?;
    Ok((Program { child, name, drained, socket_dir: place }, line))
}

impl Program {
    /// The path it was started by.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Waits until it ends, and a moment for its last output.
    ///
    /// # Errors
    /// What the system says.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        let _ = timeout(output::DRAIN_TIMEOUT, &mut self.drained).await;
        Ok(status)
    }

    /// Kills a program that cannot be used.
    pub async fn kill(mut self) {
        // It fails if the program has ended already.
        let _ = self.child.kill().await;
        let _ = timeout(output::DRAIN_TIMEOUT, &mut self.drained).await;
    }

    /// Ends it by these steps, and its children with it. Its directory is removed with it.
    pub async fn stop(mut self, steps: &[EndStep]) -> ChildExit {
        let exit = process::end(&mut self.child, steps).await;
        let _ = timeout(output::DRAIN_TIMEOUT, &mut self.drained).await;
        drop(self.socket_dir);
        exit
    }
}

/// A private directory, removed with its content.
#[derive(Debug)]
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

/// Reads its output to the end: parses it up to the handshake line, and passes everything else to standard
/// error.
fn forward_output<E: std::error::Error + 'static>(
    mut stdout: impl BufRead,
    found: oneshot::Sender<Result<PathBuf, HandshakeError<E>>>,
    parse: ParseLine<E>,
) {
    let line = handshake(&mut stdout, parse);
    // If the receiver is gone, the rest still has to be read.
    let _ = found.send(line);
    output::forward_lines(&mut stdout, &mut io::stderr());
}

fn handshake<E: std::error::Error + 'static>(
    stdout: &mut impl BufRead,
    parse: ParseLine<E>,
) -> Result<PathBuf, HandshakeError<E>> {
    for _ in 0..=MAX_STRAY_LINES {
        // One more byte than a line may have, to detect a longer one.
        let line = output::read_line(stdout, MAX_LINE_BYTES + 1).ok_or(HandshakeError::Closed)?;
        if line.len() > MAX_LINE_BYTES {
            output::forward_line(line, &mut io::stderr());
            return Err(HandshakeError::TooLong);
        }
        if let Some(found) = parse(&String::from_utf8_lossy(&line)) {
            return found.map_err(HandshakeError::Line);
        }
        output::forward_line(line, &mut io::stderr());
    }
    Err(HandshakeError::TooManyLines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("it names no absolute path")]
    struct RelativePath;

    fn parse(line: &str) -> Option<Result<PathBuf, RelativePath>> {
        let path = line.trim().strip_prefix("1|unix|")?;
        Some(if path.starts_with('/') { Ok(path.into()) } else { Err(RelativePath) })
    }

    fn line_of(output: &[u8]) -> Result<PathBuf, String> {
        let (found, mut line) = oneshot::channel();
        forward_output(output, found, parse);
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
