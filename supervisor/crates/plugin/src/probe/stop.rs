//! Stops a plugin and inspects what it leaves behind.
//!
//! Normally the monitor cleans up as soon as the program has exited, so that nothing is left to inspect. So
//! the monitor is stopped (SIGSTOP) while the program ends: its exit status is not collected, the processes
//! that it started live on, and its directory still exists. Afterwards the monitor continues and cleans up.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use talon_plugin_client::socket_dir::proc_fd_path;
use talon_sanitize::{Raw, Sanitized, sanitized};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use super::Probe;
use super::raw_client::RawClient;
use crate::rundir::{SOCKET_DIR, TMP_DIR};

/// How many leftovers are named. Others are not counted, since one is too many.
const MAX_NAMED: usize = 4;
/// The longest name in messages, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// How much of `/proc/PID/stat` is read: the process name in it has up to 15 bytes.
const MAX_STAT_BYTES: usize = 4096;

/// How the program is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMethod {
    /// go-plugin's `Shutdown`.
    Shutdown,
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

/// What was there after the program had exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopOutcome {
    /// Whether it exited in time. If not, nothing else is known.
    pub ended: bool,
    /// The names of processes that it started and left running.
    pub processes: Vec<Sanitized>,
    /// Sockets that it created and left behind.
    pub sockets: Vec<Sanitized>,
}

/// A stopped monitor. Dropping this lets it continue.
struct HaltedMonitor<'p>(&'p Probe);

impl<'p> HaltedMonitor<'p> {
    fn new(probe: &'p Probe) -> io::Result<Self> {
        probe.launched.process().signal_monitor(Signal::STOP)?;
        Ok(Self(probe))
    }
}

impl Drop for HaltedMonitor<'_> {
    fn drop(&mut self) {
        // An error means that the monitor has exited.
        let _ = self.0.launched.process().signal_monitor(Signal::CONT);
    }
}

impl Probe {
    /// Asks the program to stop and inspects what it leaves behind. With [`StopMethod::Shutdown`], a plugin
    /// that does not implement it gets SIGTERM.
    ///
    /// # Errors
    /// When this machine does not allow watching the process.
    pub async fn stop(
        &self,
        wire: Option<&RawClient>,
        by: StopMethod,
        within: Duration,
    ) -> io::Result<StopOutcome> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "it has ended already");
        let pid =
            i32::try_from(self.launched.process().pid()).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
        let halted = HaltedMonitor::new(self)?;
        // From here on its exit status is not collected, so that the pid is not reused.
        let program = ExitWatch::of(pid)?;
        let agreed = match (by, wire) {
            (StopMethod::Shutdown, Some(wire)) => wire.shutdown(within).await,
            _ => false,
        };
        if !agreed {
            let signal = if by == StopMethod::Interrupt { Signal::INT } else { Signal::TERM };
            if kill_process_group(pid, signal).is_err() {
                pidfd_send_signal(program.0.get_ref(), signal)?;
            }
        }
        let ended = timeout(within, program.wait()).await.is_ok();
        let mut end = StopOutcome { ended, processes: Vec::new(), sockets: Vec::new() };
        if ended {
            end.processes = descendants(self.launched.monitor_pid(), self.launched.process().pid())?;
            end.sockets = [SOCKET_DIR, TMP_DIR].into_iter().flat_map(|dir| self.sockets_in(dir)).collect();
            end.sockets.truncate(MAX_NAMED);
        }
        drop(halted);
        Ok(end)
    }

    fn sockets_in(&self, dir: &str) -> Vec<Sanitized> {
        use std::os::unix::fs::FileTypeExt;

        let Ok(opened) = self.launched.dir().sockets().open(Path::new(dir)) else { return Vec::new() };
        let entries = std::fs::read_dir(proc_fd_path(opened.as_fd())).into_iter().flatten().flatten();
        let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
        let name = |entry: std::fs::DirEntry| {
            Raw::from(entry.file_name().to_string_lossy()).line_within(MAX_NAME_BYTES)
        };
        sockets.take(MAX_NAMED).map(name).collect()
    }
}

/// A process whose exit can be awaited.
struct ExitWatch(AsyncFd<OwnedFd>);

impl ExitWatch {
    #[expect(
        deprecated,
        reason = "the successor is unsafe, which this crate forbids; what it asks for holds: the descriptor is owned, and \
                  closed with this"
    )]
    fn of(pid: Pid) -> io::Result<Self> {
        let fd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Self(AsyncFd::with_interest(fd, Interest::READABLE)?))
    }

    async fn wait(&self) {
        // An error means that the runtime is shutting down.
        let _ = self.0.readable().await;
    }
}

struct ProcessEntry {
    pid: u32,
    parent: u32,
    name: String,
}

/// The running processes below a monitor, without the program itself.
fn descendants(monitor: u32, program: u32) -> io::Result<Vec<Sanitized>> {
    let all: Vec<ProcessEntry> = std::fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| read_process(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut family = vec![monitor];
    let mut named = Vec::new();
    // Each round finds the children of the one before.
    let mut parents = vec![monitor];
    while !parents.is_empty() {
        let children: Vec<&ProcessEntry> =
            all.iter().filter(|it| parents.contains(&it.parent) && !family.contains(&it.pid)).collect();
        let left = children.iter().filter(|it| it.pid != program);
        named.extend(left.map(|it| {
            sanitized!("{} (process {})", Raw::from(&it.name).line_within(MAX_NAME_BYTES), it.pid)
        }));
        parents = children.iter().map(|it| it.pid).collect();
        family.extend(&parents);
    }
    named.truncate(MAX_NAMED);
    Ok(named)
}

/// Reads a process from `/proc`. `None` if it is gone or a zombie.
fn read_process(pid: u32) -> Option<ProcessEntry> {
    use std::io::Read;

    let mut stat = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    file.take(MAX_STAT_BYTES as u64).read_to_end(&mut stat).ok()?;
    let text = String::from_utf8_lossy(&stat);
    let (start, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let name = start.split_once('(')?.1.to_owned();
    (!matches!(state, "Z" | "X")).then_some(ProcessEntry { pid, parent, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_below_a_process_is_named_without_the_program() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let named = descendants(std::process::id(), 0).unwrap();
        assert!(named.iter().any(|name| name.starts_with("sleep (process ")), "{named:?}");
        let without = descendants(std::process::id(), child.id()).unwrap();
        assert!(
            !without.iter().any(|name| name.contains(&format!("process {})", child.id()))),
            "{without:?}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
