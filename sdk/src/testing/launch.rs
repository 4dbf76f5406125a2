//! Starts a plugin binary and reads its handshake.

use std::collections::VecDeque;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use crate::random::random_name;
use crate::serve::{APP_VERSION, COOKIE_KEY, COOKIE_VALUE, SOCKET_DIR_ENV, VERSIONS_ENV};

/// How much of the handshake line is read, as in real hosts.
const MAX_LINE_BYTES: u64 = 4096;
/// How many of the plugin's last log lines are kept for error messages and [`Host::log`](super::Host::log).
const MAX_LOG_LINES: usize = 1000;
/// The longest log line kept.
const MAX_LOG_LINE_BYTES: u64 = 64 << 10;

/// Why a plugin did not get to its first call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The program could not be started, or its directory not made.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// Which program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It wrote no handshake line in time.
    #[error("no handshake line within {after:?}; the plugin's log:\n{log}")]
    Silent {
        /// How long it had.
        after: Duration,
        /// What it wrote to stderr.
        log: String,
    },
    /// It ended, or closed its stdout, before a handshake line.
    #[error("the plugin ended ({status}) before its handshake; its log:\n{log}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to stderr.
        log: String,
    },
    /// Its first line is no handshake of this dialect.
    #[error("expected a line like 1|1|unix|PATH|grpc on stdout, got {line:?}")]
    Line {
        /// What it wrote.
        line: String,
    },
    /// Cannot connect to its socket.
    #[error("cannot connect to the plugin")]
    Connect(#[from] tonic::transport::Error),
    /// It refused its configuration, or failed on it.
    #[error("Init: {}", .0.message())]
    Init(Box<tonic::Status>),
}

/// A plugin's process with its directory. Dropping it kills the process and all its child processes.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pid: i32,
    pub(super) socket: PathBuf,
    log: Log,
    _dir: PrivateDir,
}

/// The last lines of a stream, and a notification for tasks that wait for one.
#[derive(Debug, Clone, Default)]
struct Log(Arc<(Mutex<VecDeque<String>>, Notify)>);

impl Log {
    fn push(&self, line: String) {
        let mut lines = self.0.0.lock();
        if lines.len() == MAX_LOG_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
        drop(lines);
        self.0.1.notify_waiters();
    }

    fn text(&self) -> String {
        self.0.0.lock().iter().map(|line| format!("{line}\n")).collect()
    }

    /// Waits for a line that contains `text`.
    async fn line_with(&self, text: &str) -> String {
        loop {
            let mut bell = pin!(self.0.1.notified());
            // Waiting is enabled before the check, so that no line in between is missed.
            bell.as_mut().enable();
            if let Some(line) = self.0.0.lock().iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            bell.await;
        }
    }
}

/// A directory of mode 0700, removed when dropped.
#[derive(Debug)]
pub(super) struct PrivateDir(pub(super) PathBuf);

impl PrivateDir {
    pub(super) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("talon-test-{}", random_name()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // A leftover in the temporary directory is no reason to fail a test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a program with a host's environment and waits for its handshake line.
pub(super) async fn launch(
    program: &Path,
    args: &[String],
    env: &[(String, String)],
    dir: PrivateDir,
    timeout: Duration,
) -> Result<Process, LaunchError> {
    let start = |source| LaunchError::Start { program: program.to_owned(), source };
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env(COOKIE_KEY, COOKIE_VALUE)
        .env(VERSIONS_ENV, APP_VERSION.to_string())
        .env(SOCKET_DIR_ENV, &dir.0)
        .env("TMPDIR", &dir.0)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A separate process group, so that all its child processes can be killed with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(start)?;
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .ok_or_else(|| start(io::Error::other("it has no pid")))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(start(io::Error::other("it has no pipes")));
    };
    let log = Log::default();
    let reading = tokio::spawn(drain(BufReader::new(stderr), log.clone()));
    let mut process = Process { child, pid, socket: PathBuf::new(), log: log.clone(), _dir: dir };

    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    let mut bounded = (&mut stdout).take(MAX_LINE_BYTES);
    match tokio::time::timeout(timeout, bounded.read_until(b'\n', &mut line)).await {
        Err(_) => return Err(LaunchError::Silent { after: timeout, log: log.text() }),
        Ok(Err(error)) => return Err(start(error)),
        Ok(Ok(0)) => {
            let status = match tokio::time::timeout(timeout, process.child.wait()).await {
                Ok(status) => status.map_err(start)?,
                Err(_) => return Err(LaunchError::Silent { after: timeout, log: log.text() }),
            };
            // The end of the log explains the exit. A grandchild may hold the pipe open, so this does not
            // wait for ever.
            let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
            return Err(LaunchError::Ended { status, log: log.text() });
        }
        Ok(Ok(_)) => {}
    }
    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
    process.socket = parse(&line).ok_or(LaunchError::Line { line })?;
    // What tools print later must not fill the pipe and block them.
    tokio::spawn(drain(stdout, Log::default()));
    Ok(process)
}

fn parse(line: &str) -> Option<PathBuf> {
    let mut fields = line.split('|');
    let core = fields.next()? == "1";
    let app = fields.next()?.parse() == Ok(APP_VERSION);
    let unix = fields.next()? == "unix";
    let path = fields.next().filter(|path| path.starts_with('/'))?;
    let grpc = fields.next()? == "grpc";
    (core && app && unix && grpc).then(|| PathBuf::from(path))
}

async fn drain(mut reader: impl AsyncBufReadExt + AsyncRead + Unpin, log: Log) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(MAX_LOG_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => log.push(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }
}

impl Process {
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    pub(super) fn log(&self) -> String {
        self.log.text()
    }

    pub(super) async fn line_with(&self, text: &str) -> String {
        self.log.line_with(text).await
    }

    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        // The child is not reaped while this value lives, so the pid is still valid.
        Ok(nix::sys::signal::kill(Pid::from_raw(self.pid), signal)?)
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once the child is reaped its pid may be reused. Until then the whole group is killed with it.
        if self.child.id().is_some() {
            // Gone already is fine; the child itself is reaped by the runtime.
            let _ = killpg(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_agreed_line_is_a_handshake() {
        assert_eq!(parse("1|1|unix|/tmp/x|grpc"), Some(PathBuf::from("/tmp/x")));
        assert_eq!(parse("1|1|unix|/tmp/x|grpc|"), Some(PathBuf::from("/tmp/x")));
        for line in ["", "hello", "1|2|unix|/tmp/x|grpc", "1|1|tcp|/x|grpc", "1|1|unix|x|grpc", "1|1|unix|/x"]
        {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }
}
