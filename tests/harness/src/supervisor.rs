//! A running `talon serve`, and what it leaves behind.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parking_lot::Mutex;
use tokio::process::{Child, Command};

use crate::cli::cli;
use crate::client::Client;
use crate::processes::{alive, descendants, describe, in_uid_range, is_root};
use crate::scratch::{Scratch, program};
use crate::spawn::{WAIT_TIMEOUT, connect, spawn, wait_for_log};
use crate::uids::Uids;

/// A running supervisor. Dropping it kills it; [`Supervisor::stop`] ends it properly and checks what it
/// leaves behind.
#[derive(Debug)]
pub struct Supervisor {
    /// Its scratch directory.
    pub scratch: Scratch,
    /// A client of its socket.
    pub client: Client,
    pub(crate) child: Child,
    pub(crate) runtime_dir: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) uids: Uids,
    pub(crate) log: Arc<Mutex<String>>,
    /// Ends when all of the log is read.
    pub(crate) reader: tokio::task::JoinHandle<()>,
}

/// What a stopped supervisor left behind.
#[derive(Debug)]
pub struct Stopped {
    /// How it ended.
    pub status: ExitStatus,
    /// Processes of its plugins that still live.
    pub processes: Vec<u32>,
    /// Files left in its runtime directory.
    pub sockets: Vec<PathBuf>,
    /// All it logged.
    pub log: String,
    /// What the next one can continue with.
    pub left: Leftovers,
}

/// What a supervisor leaves for the next one: its files, and the uids that own them.
#[derive(Debug)]
pub struct Leftovers {
    pub(crate) scratch: Scratch,
    pub(crate) uids: Uids,
}

/// Another `talon serve` on the files of a running one.
#[derive(Debug)]
pub struct SiblingSupervisor {
    pub(crate) child: Child,
    pub(crate) log: Arc<Mutex<String>>,
    pub(crate) reader: tokio::task::JoinHandle<()>,
}

impl SiblingSupervisor {
    /// Its process id.
    ///
    /// # Panics
    /// When it has been waited for.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).expect("it runs");
    }

    /// What it logged so far.
    ///
    /// # Panics
    /// Never: the reader does not panic.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().clone()
    }

    /// Waits until it has logged this.
    ///
    /// # Panics
    /// When it does not.
    pub async fn wait_log(&self, text: &str) {
        wait_for_log(&self.log, text).await;
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let waited = tokio::time::timeout(WAIT_TIMEOUT, self.child.wait()).await;
        let status =
            waited.unwrap_or_else(|_| panic!("talon did not end:\n{}", self.log())).expect("it is ours");
        let _ = tokio::time::timeout(WAIT_TIMEOUT, &mut self.reader).await;
        (status, self.log())
    }
}

impl Leftovers {
    /// The scratch directory.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }
}

impl Supervisor {
    /// Its process id.
    ///
    /// # Panics
    /// When it has been waited for.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Its `host.sock`.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.runtime_dir.join("host.sock")
    }

    /// Its `agent.sock`.
    #[must_use]
    pub fn agent_socket(&self) -> PathBuf {
        self.runtime_dir.join("agent.sock")
    }

    /// Its `admin.sock`.
    #[must_use]
    pub fn admin(&self) -> PathBuf {
        self.runtime_dir.join("admin.sock")
    }

    /// Its runtime directory.
    #[must_use]
    pub fn runtime_dir(&self) -> &Path {
        &self.runtime_dir
    }

    /// Its config file.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// What it logged so far.
    ///
    /// # Panics
    /// Never: the reader does not panic.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().clone()
    }

    /// The living processes of its plugins (with their monitors if they run under the same uid), without
    /// the supervisor's services.
    #[must_use]
    pub fn plugin_processes(&self) -> Vec<u32> {
        let all: Vec<u32> =
            if is_root() { in_uid_range(&self.uids) } else { descendants(self.pid()).into_iter().collect() };
        // The supervisor's own processes: its services, and the jail's stage processes.
        let service = |pid: u32| {
            matches!(
                crate::processes::name(pid).as_deref(),
                Some("talon-state" | "talon-agent" | "talon-gateway" | "talon-test-agent" | "talon-zygote")
            )
        };
        let monitors = |pid: u32| descendants(pid).into_iter().any(service);
        all.into_iter().filter(|pid| !service(*pid) && !monitors(*pid)).collect()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).expect("it runs");
    }

    /// Waits until it has logged this.
    ///
    /// # Panics
    /// When it does not.
    pub async fn wait_log(&self, text: &str) {
        wait_for_log(&self.log, text).await;
    }

    /// Closes our end of its log.
    pub async fn close_log(&mut self) {
        let reader = std::mem::replace(&mut self.reader, tokio::spawn(async {}));
        reader.abort();
        // Only its end matters, because it was aborted.
        let _ = reader.await;
    }

    /// Starts another `talon serve` on the same files.
    #[must_use]
    pub fn start_sibling(&self, args: &[&str]) -> SiblingSupervisor {
        let log = Arc::new(Mutex::new(String::new()));
        let mut command = Command::new(program("talon"));
        command.args(["serve", "--config"]).arg(&self.config).args(args);
        let (child, reader) = spawn(command, &log);
        SiblingSupervisor { child, log, reader }
    }

    /// Waits until this one has ended well and its sibling serves; returns the sibling, and this one's log.
    ///
    /// # Panics
    /// When it does not end, or the sibling does not answer afterwards.
    pub async fn succeeded_by(self, other: SiblingSupervisor) -> (Self, String) {
        let SiblingSupervisor { mut child, log, reader } = other;
        let old = SiblingSupervisor { child: self.child, log: self.log, reader: self.reader };
        let (status, said) = old.ended().await;
        assert!(status.success(), "{status}:\n{said}");
        let socket = self.runtime_dir.join("host.sock");
        let client = tokio::time::timeout(WAIT_TIMEOUT, connect(&socket, &mut child)).await;
        let Ok(Some(client)) = client else { panic!("no supervisor answers:\n{}", log.lock()) };
        let Self { scratch, runtime_dir, config, uids, .. } = self;
        (Self { scratch, client, child, runtime_dir, config, uids, log, reader }, said)
    }

    /// Ends it with SIGTERM, and waits only for its own end: its plugins may keep running.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn hands_over(self) -> (ExitStatus, String, Leftovers) {
        self.signal(Signal::SIGTERM);
        let old = SiblingSupervisor { child: self.child, log: self.log, reader: self.reader };
        let (status, said) = old.ended().await;
        (status, said, Leftovers { scratch: self.scratch, uids: self.uids })
    }

    /// Runs the command line against it.
    pub async fn cli(&self, args: &[&str]) -> Output {
        let socket = self.socket();
        let mut all = vec!["--socket", socket.to_str().expect("our paths are text")];
        all.extend(args);
        cli(&all).await
    }

    /// Ends it as an operator does and checks what it leaves behind.
    pub async fn stop(self) -> Stopped {
        self.end(Signal::SIGTERM).await
    }

    /// Ends it with a signal and checks what it leaves behind.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn end(mut self, signal: Signal) -> Stopped {
        let family = descendants(self.pid());
        self.signal(signal);
        let waited = tokio::time::timeout(WAIT_TIMEOUT, self.child.wait()).await;
        let status =
            waited.unwrap_or_else(|_| panic!("talon did not end:\n{}", self.log())).expect("it is ours");
        // Its children die a moment later: they are watched until they are gone.
        let watch = async {
            let mut pause = tokio::time::interval(Duration::from_millis(10));
            while family.iter().any(|pid| alive(*pid)) || !in_uid_range_of(&self.uids).is_empty() {
                pause.tick().await;
            }
        };
        let _ = tokio::time::timeout(WAIT_TIMEOUT, watch).await;
        // Normally no process outlives it that could hold its log open.
        let _ = tokio::time::timeout(WAIT_TIMEOUT, &mut self.reader).await;
        let mut processes: Vec<u32> = family.into_iter().filter(|pid| alive(*pid)).collect();
        processes.extend(in_uid_range_of(&self.uids));
        for pid in &processes {
            eprintln!("left behind: {}", describe(*pid));
        }
        let (sockets, log) = (sockets_below(&self.runtime_dir), self.log());
        let left = Leftovers { scratch: self.scratch, uids: self.uids };
        Stopped { status, processes, sockets, log, left }
    }
}

/// Without root the plugins share our uid, and only the process tree identifies them.
fn in_uid_range_of(uids: &RangeInclusive<u32>) -> Vec<u32> {
    if is_root() { in_uid_range(uids) } else { Vec::new() }
}

/// All sockets in a directory and those below it.
#[must_use]
pub fn sockets_below(directory: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_socket() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}
