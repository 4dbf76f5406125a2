//! The contenders of the call suites: raw frames, bare tonic with one hop and with two, go-plugin's host, and
//! Talon in process and through `host.sock`. Each is a driver process with all the processes that it calls.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use talon_tests::{Builder, Scratch, Supervisor, go_program, is_root, program};

use crate::driver::Driver;
use crate::guarded::PLUGIN;

/// As many concurrent calls as the largest load, so that no queue is measured.
const LIMITS: &str = "concurrency: 256\nqueue: 256";

/// One contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Contender {
    /// Frames on a unix socket: the lower limit.
    Raw,
    /// The same messages by unmodified tonic.
    Bare,
    /// The same through a process in the middle that only forwards calls.
    Relay,
    /// Guard and plugin client in the caller's process, without metrics and logs.
    InProcess,
    /// The same in a process that records metrics and logs, as a supervisor does.
    Recorded,
    /// Client, supervisor, plugin.
    Host,
    /// go-plugin's own host with the same plugin.
    Go,
}

impl Contender {
    /// All of them, in the order in which they take turns.
    pub const ALL: [Self; 7] =
        [Self::Raw, Self::Bare, Self::Relay, Self::InProcess, Self::Recorded, Self::Host, Self::Go];

    /// Its name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw socket",
            Self::Bare => "bare tonic",
            Self::Relay => "two bare hops",
            Self::InProcess => "in process",
            Self::Recorded => "in process, recorded",
            Self::Host => "host.sock",
            Self::Go => "Go host",
        }
    }

    /// Starts its processes. `None`: this machine lacks Go.
    ///
    /// # Errors
    /// If one of them does not get ready; its output is on stderr.
    pub async fn start(self) -> Result<Option<Driver>> {
        match self {
            Self::Raw => raw().map(Some),
            Self::Bare => bare().map(Some),
            Self::Relay => relay().map(Some),
            Self::InProcess | Self::Recorded => self.in_process().map(Some),
            Self::Host => host().await.map(Some),
            Self::Go => go(),
        }
    }

    fn in_process(self) -> Result<Driver> {
        let scratch = Scratch::new();
        let mut config = format!(
            "runtime_dir: {0}/run\nstate:\n  engine: off\n  data_dir: {0}/data\n",
            scratch.path().display()
        );
        if is_root() {
            // Both of them run at the same time.
            let uids = if self == Self::Recorded { "91210-91219" } else { "91200-91209" };
            let _ = write!(config, "sandbox:\n  uid_range: {uids}\n");
        }
        let _ = write!(config, "plugins:\n  tools:\n    plugins:\n      {PLUGIN}:\n");
        let _ = writeln!(config, "        command: {:?}", program("talon-bench-plugin"));
        for line in LIMITS.lines() {
            let _ = writeln!(config, "        {line}");
        }
        let config = scratch.write("talon.yaml", &config);
        let mut command = guarded("in-process");
        if self == Self::Recorded {
            command.arg("--recorded");
        }
        Driver::start(self.name(), command.arg(config), Vec::new(), scratch)
    }
}

/// A server process; killed when dropped.
struct Server {
    child: Child,
    socket: PathBuf,
    _scratch: Scratch,
}

impl Server {
    fn start(part: &str, more: &[&Path]) -> Result<Self> {
        let scratch = Scratch::new();
        let socket = scratch.join("server.sock");
        let mut command = stock(part);
        let mut child =
            command.arg(&socket).args(more).stdout(Stdio::piped()).spawn().context(part.to_owned())?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let server = Self { child, socket, _scratch: scratch };
        // It prints a line once it listens, and nothing else.
        ensure!(BufReader::new(stdout).read_line(&mut String::new())? > 0, "{part} ended; see above");
        Ok(server)
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is our child and reaped below; an error cannot be handled here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stock(part: &str) -> Command {
    let mut command = Command::new(program("talon-bench-stock"));
    command.arg(part);
    command
}

fn guarded(part: &str) -> Command {
    let mut command = Command::new(program("talon-bench-guarded"));
    command.arg(part);
    command
}

fn raw() -> Result<Driver> {
    let server = Server::start("raw-server", &[])?;
    Driver::start(Contender::Raw.name(), stock("raw-driver").arg(&server.socket), vec![server.pid()], server)
}

fn bare() -> Result<Driver> {
    let server = Server::start("bare-server", &[])?;
    Driver::start(
        Contender::Bare.name(),
        stock("bare-driver").arg(&server.socket),
        vec![server.pid()],
        server,
    )
}

fn relay() -> Result<Driver> {
    let server = Server::start("bare-server", &[])?;
    let relay = Server::start("relay", &[&server.socket])?;
    let pids = vec![server.pid(), relay.pid()];
    Driver::start(Contender::Relay.name(), stock("bare-driver").arg(&relay.socket), pids, (relay, server))
}

async fn host() -> Result<Driver> {
    let supervisor: Supervisor =
        Builder::new().plugin(PLUGIN, &program("talon-bench-plugin"), &[], LIMITS).start().await;
    let socket = supervisor.socket();
    let pids = vec![supervisor.pid()];
    Driver::start(Contender::Host.name(), guarded("host").arg(socket), pids, supervisor)
}

/// Unmodified go-plugin by HashiCorp, with all the threads that Go takes. Its host starts the plugin itself.
fn go() -> Result<Option<Driver>> {
    let Some(host) = go_program("talon-bench", "bench-host") else { return Ok(None) };
    let mut command = Command::new(host);
    Driver::start(Contender::Go.name(), command.arg(program("talon-bench-plugin")), Vec::new(), ()).map(Some)
}
