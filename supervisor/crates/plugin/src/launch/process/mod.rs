//! One process and everything it started, watched until none of it is left.

mod hand_over;
mod inner;
mod watch;

use std::io;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use talon_jail::{ExitStatus, Group, GroupError, Limits, Monitor};
use tokio::sync::watch as channel;
use tokio_util::sync::CancellationToken;

pub(super) use self::hand_over::HandoverState;
pub(crate) use self::inner::Exit;
use self::inner::ProcessInner;
pub(super) use self::inner::ServedSockets;
use self::watch::{ControlFd, PidFd, readable, watch_until_gone};
use crate::rundir::PrivateDir;
use crate::usage::Reading;
use crate::view::View;

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// The resources of a process until none of it is left.
pub(super) struct ProcessResources {
    pub(super) dir: Arc<PrivateDir>,
    /// The view it runs from.
    pub(super) view: Option<Arc<View>>,
    /// The cgroup of it and everything it starts, where there are cgroups.
    pub(super) group: Option<Group>,
    /// The sockets that are served for it.
    pub(super) sockets: ServedSockets,
}

/// The handle on one process. Dropping it kills the process and everything it started; a task waits until
/// they are gone and removes their directory. After the runtime directory was released, dropping it leaves
/// the process running.
#[derive(Debug)]
pub(crate) struct Process {
    inner: Arc<ProcessInner>,
    exit: channel::Receiver<Option<Exit>>,
    gone: channel::Receiver<bool>,
    /// Set once it is ready.
    handover_state: OnceLock<HandoverState>,
}

impl Process {
    /// Wraps a process that was just started.
    pub(super) fn new(monitor: Monitor, pid: u32, uid: u32, resources: ProcessResources) -> io::Result<Self> {
        let ProcessResources { dir, view, group, sockets } = resources;
        let inner = Arc::new(ProcessInner {
            monitor,
            pid,
            uid,
            dir,
            view: Mutex::new(view),
            group: Mutex::new(group),
            sockets: Mutex::new(sockets),
            released: CancellationToken::new(),
        });
        let control = readable(ControlFd(inner.clone()))?;
        let pidfd = readable(PidFd(inner.clone()))?;
        let (exit_sender, exit) = channel::channel(None);
        let (gone_sender, gone) = channel::channel(false);
        let released = inner.released.clone();
        tokio::spawn(async move {
            // A released process belongs to another supervisor and is not touched any more, even if it ends.
            released.run_until_cancelled(watch_until_gone(control, pidfd, exit_sender)).await;
            gone_sender.send_replace(true);
        });
        Ok(Self { inner, exit, gone, handover_state: OnceLock::new() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.inner.pid
    }

    pub(crate) fn uid(&self) -> u32 {
        self.inner.uid
    }

    /// The monitor, an ancestor of all of the plugin's processes.
    pub(super) fn monitor_pid(&self) -> u32 {
        self.inner.monitor.pid()
    }

    /// Resource usage of it and everything it started, from its cgroup if it has one.
    pub(crate) fn reading(&self) -> Reading {
        let of_group = |group: &Group| {
            let (memory_bytes, processes) = (group.memory_current()?, group.pids_current()?);
            Some(Reading::Cgroup { cpu: group.cpu_time()?, memory_bytes, processes })
        };
        let below = Reading::ProcessTree { pid: self.monitor_pid() };
        self.inner.group.lock().as_ref().and_then(of_group).unwrap_or(below)
    }

    /// Whether it was ended for using too much memory.
    pub(crate) fn was_oom_killed(&self) -> bool {
        let exit = *self.exit.borrow();
        exit.is_some_and(|exit| matches!(exit.status, ExitStatus::OutOfMemory { .. }))
    }

    /// Resolves as soon as the program ends.
    pub(crate) async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        // The watcher ends without a result only when the runtime ends.
        let seen = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
        seen.unwrap_or(Exit { status: ExitStatus::MonitorLost })
    }

    /// Resolves when no process and no directory of it is left.
    pub(crate) async fn gone(&self) {
        self.gone_signal().await;
    }

    /// Like [`Process::gone`], but may outlive this handle.
    pub(crate) fn gone_signal(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut gone = self.gone.clone();
        async move {
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// Sends a signal to the monitor itself.
    pub(crate) fn signal_monitor(&self, signal: rustix::process::Signal) -> io::Result<()> {
        Ok(rustix::process::pidfd_send_signal(self.inner.monitor.pidfd(), signal)?)
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
        if let Err(error) = self.inner.monitor.signal(signal) {
            tracing::warn!(pid = self.inner.pid, signal, %error, "a signal could not be sent");
        }
    }

    /// Sets the sockets that are served for it, if it had none so far.
    pub(super) fn serve(&self, sockets: ServedSockets) {
        *self.inner.sockets.lock() = sockets;
    }

    /// Applies the limits to its cgroup again, if it has one.
    pub(super) fn set_limits(&self, limits: &Limits) -> Result<(), GroupError> {
        self.inner.group.lock().as_mut().map_or(Ok(()), |group| group.set_limits(limits))
    }

    /// Marks it as ready; it can be handed over from here on.
    pub(super) fn set_ready(&self, state: HandoverState) {
        // A process becomes ready once.
        let _ = self.handover_state.set(state);
    }

    /// Releases it without ending it: another supervisor owns it. If none does, its lifeline closes and it
    /// ends anyway.
    fn release(&self) {
        self.inner.monitor.release();
        if let Some(group) = self.inner.group.lock().take() {
            group.release();
        }
        *self.inner.sockets.lock() = ServedSockets::default();
        self.inner.released.cancel();
    }

    /// SIGKILL to everything that it started.
    pub(crate) fn kill_all(&self) {
        self.inner.kill_all();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.inner.dir.is_released() {
            self.release();
        } else if !*self.gone.borrow() {
            self.kill_all();
        }
    }
}
