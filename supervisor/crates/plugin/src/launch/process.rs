//! One process and everything it started: watched until nothing of it is left.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talon_jail::{ExitStatus, Group, Monitor};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::egress::Proxy;
use crate::rundir::PrivateDir;
use crate::state_sockets::Attached;
use crate::view::View;

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// How long a monitor may take to clear up behind a program that has ended, before it is told to kill all. It
/// only has to kill and wait, so that this passes only if it was stopped.
const CLEARING: Duration = Duration::from_secs(5);

/// How a process ended. Reads as "exit code 3" or "killed by SIGKILL".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    /// As its monitor saw it.
    pub(crate) status: ExitStatus,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)
    }
}

/// What a process has for as long as anything of it is left.
pub(super) struct Belongings {
    pub(super) dir: Arc<PrivateDir>,
    /// What it runs from.
    pub(super) view: Option<Arc<View>>,
    /// What bounds it and all it starts together, where there are cgroups.
    pub(super) group: Option<Group>,
    /// Its way out.
    pub(super) proxy: Option<Proxy>,
    /// Its way to its key-values.
    pub(super) state: Option<Box<dyn Attached>>,
}

/// The handle on one process. Dropping it kills the process and all it started; a task goes on until they are
/// gone and their directory is removed.
#[derive(Debug)]
pub(crate) struct Process {
    held: Arc<Held>,
    exit: watch::Receiver<Option<Exit>>,
    gone: watch::Receiver<bool>,
}

#[derive(Debug)]
struct Held {
    monitor: Monitor,
    pid: u32,
    uid: u32,
    group: Mutex<Option<Group>>,
}

impl Held {
    /// By the monitor and by the kernel: each reaches what the other may not.
    fn kill_all(&self) {
        if let Err(error) = self.monitor.kill_all() {
            tracing::warn!(pid = self.pid, %error, "a process could not be killed");
        }
        if let Some(Err(error)) = self.group().as_ref().map(Group::kill) {
            tracing::warn!(pid = self.pid, %error, "a cgroup could not be killed");
        }
    }

    fn group(&self) -> MutexGuard<'_, Option<Group>> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the monitor's descriptors, for as long as somebody waits on it.
struct ControlFd(Arc<Held>);
struct PidFd(Arc<Held>);

impl AsRawFd for ControlFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.monitor.control().as_raw_fd()
    }
}

impl AsRawFd for PidFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.monitor.pidfd().as_raw_fd()
    }
}

impl Process {
    /// Takes over a process that was just started.
    pub(super) fn new(monitor: Monitor, pid: u32, uid: u32, belongings: Belongings) -> io::Result<Self> {
        let Belongings { dir, view, group, proxy, state } = belongings;
        let held = Arc::new(Held { monitor, pid, uid, group: Mutex::new(group) });
        let control = readable(ControlFd(held.clone()))?;
        let pidfd = readable(PidFd(held.clone()))?;
        let (exit_sender, exit) = watch::channel(None);
        let (gone_sender, gone) = watch::channel(false);
        tokio::spawn(async move {
            let status = program_end(&control).await;
            // The kernel's word about memory, which a monitor that was killed along cannot give.
            let status = control.get_ref().0.group().as_ref().map_or(status, |group| group.explain(status));
            drop((proxy, state));
            exit_sender.send_replace(Some(Exit { status }));
            if tokio::time::timeout(CLEARING, monitor_end(&pidfd)).await.is_err() {
                pidfd.get_ref().0.kill_all();
                if tokio::time::timeout(CLEARING, monitor_end(&pidfd)).await.is_err() {
                    pidfd.get_ref().0.monitor.kill_monitor();
                    monitor_end(&pidfd).await;
                }
            }
            let group = pidfd.get_ref().0.group().take();
            let removed = tokio::task::spawn_blocking(move || {
                // It kills what may be left in it, and waits for that.
                drop(group);
                dir.remove();
                drop(view);
            });
            let _ = removed.await;
            gone_sender.send_replace(true);
        });
        Ok(Self { held, exit, gone })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.held.pid
    }

    pub(crate) fn uid(&self) -> u32 {
        self.held.uid
    }

    /// The process below which all of the plugin's are.
    pub(super) fn monitor_pid(&self) -> u32 {
        self.held.monitor.pid()
    }

    /// Resolves as soon as the program ends.
    pub(crate) async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        // The watcher only goes without a word when the runtime ends.
        let seen = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        seen.unwrap_or(Exit { status: ExitStatus::MonitorLost })
    }

    /// Resolves when nothing of it is left: no process, no directory.
    pub(crate) async fn gone(&self) {
        self.gone_signal().await;
    }

    /// The same for somebody who outlives this handle.
    pub(crate) fn gone_signal(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut gone = self.gone.clone();
        async move {
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// A signal to the monitor itself.
    pub(crate) fn signal_monitor(&self, signal: rustix::process::Signal) -> io::Result<()> {
        Ok(rustix::process::pidfd_send_signal(self.held.monitor.pidfd(), signal)?)
    }

    /// SIGINT to the program and its process group.
    pub(crate) fn interrupt(&self) {
        self.signal(SIGINT);
    }

    /// SIGTERM to the program and its process group.
    pub(crate) fn terminate(&self) {
        self.signal(SIGTERM);
    }

    fn signal(&self, signal: i32) {
        if let Err(error) = self.held.monitor.signal(signal) {
            tracing::warn!(pid = self.held.pid, signal, %error, "a signal could not be sent");
        }
    }

    /// SIGKILL to everything that it started.
    pub(crate) fn kill_all(&self) {
        self.held.kill_all();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !*self.gone.borrow() {
            self.kill_all();
        }
    }
}

#[expect(
    deprecated,
    reason = "the successor is unsafe, which this crate forbids; what it asks for holds: the descriptor belongs to \
              the monitor, which lives as long as anybody waits on it"
)]
fn readable<F: AsRawFd>(fd: F) -> io::Result<AsyncFd<F>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

/// Waits for the monitor's word about the program, or for the monitor's end.
async fn program_end(control: &AsyncFd<ControlFd>) -> ExitStatus {
    loop {
        let Ok(mut ready) = control.readable().await else { return ExitStatus::MonitorLost };
        match control.get_ref().0.monitor.try_exit_status() {
            Ok(Some(status)) => return status,
            Ok(None) => ready.clear_ready(),
            Err(error) => {
                tracing::warn!(%error, "a plugin's monitor cannot be understood");
                let _ = control.get_ref().0.monitor.kill_all();
                return ExitStatus::MonitorLost;
            }
        }
    }
}

/// Waits until the monitor has exited, and reaps it.
async fn monitor_end(pidfd: &AsyncFd<PidFd>) {
    loop {
        let Ok(mut ready) = pidfd.readable().await else { return };
        match pidfd.get_ref().0.monitor.reap() {
            Ok(false) => ready.clear_ready(),
            Ok(true) | Err(_) => return,
        }
    }
}
