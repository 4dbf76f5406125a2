//! One process and everything it started, watched until none of it is left.

use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use talon_control::fd_bundle::Packer;
use talon_egress::Proxy;
use talon_jail::{ExitStatus, Group, GroupError, Limits, Monitor, MonitorParts};
use talon_plugin_client::connect::ClientIdentity;
use talon_plugin_client::handshake::{Address, Handshake};
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::Dialect;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::handover::{AddressRecord, DirRecord, InstanceCounters, MonitorRecord, ProcessRecord};
use crate::rundir::PrivateDir;
use crate::state_sockets::AttachedSocket;
use crate::stdio::SharedPipe;
use crate::usage::Reading;
use crate::view::View;

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// How long a monitor may clean up after a program that has ended, before the kill of everything is repeated.
/// It only has to kill and wait, so this passes only if the monitor was stopped.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

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

/// The data that another supervisor needs to take over a ready process.
#[derive(Debug)]
pub(super) struct HandoverState {
    /// Of the spec that it was started from; `None`: the spec has no fingerprint.
    pub(super) fingerprint: Option<String>,
    pub(super) digest: String,
    pub(super) handshake: Handshake,
    /// The dialect it is called in.
    pub(super) dialect: Dialect,
    /// The client certificate, if its connections are encrypted.
    pub(super) identity: Option<ClientIdentity>,
    pub(super) report: talon_jail::Report,
    pub(super) stdout: SharedPipe,
    pub(super) stderr: SharedPipe,
}

/// The handle on one process. Dropping it kills the process and everything it started; a task waits until
/// they are gone and removes their directory. After the runtime directory was released, dropping it leaves
/// the process running.
#[derive(Debug)]
pub(crate) struct Process {
    inner: Arc<ProcessInner>,
    exit: watch::Receiver<Option<Exit>>,
    gone: watch::Receiver<bool>,
    /// Set once it is ready.
    handover_state: OnceLock<HandoverState>,
}

#[derive(Debug)]
struct ProcessInner {
    monitor: Monitor,
    pid: u32,
    uid: u32,
    dir: Arc<PrivateDir>,
    view: Mutex<Option<Arc<View>>>,
    group: Mutex<Option<Group>>,
    /// Until the program ends.
    sockets: Mutex<ServedSockets>,
    /// Another supervisor owns the process.
    released: CancellationToken,
}

/// The sockets that are served for a process.
#[derive(Debug, Default)]
pub(super) struct ServedSockets {
    /// Its egress proxy.
    pub(super) proxy: Option<Proxy>,
    /// Its key-value store.
    pub(super) state: Option<Box<dyn AttachedSocket>>,
}

impl ProcessInner {
    /// Kills through the monitor and through the cgroup: each reaches processes that the other may miss.
    fn kill_all(&self) {
        if let Err(error) = self.monitor.kill_all() {
            tracing::warn!(pid = self.pid, %error, "a process could not be killed");
        }
        if let Some(Err(error)) = self.group.lock().as_ref().map(Group::kill) {
            tracing::warn!(pid = self.pid, %error, "a cgroup could not be killed");
        }
    }
}

/// One of the monitor's descriptors; keeps the monitor alive while a task waits on it.
struct ControlFd(Arc<ProcessInner>);
struct PidFd(Arc<ProcessInner>);

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
    /// Wraps a process that was just started.
    pub(super) fn new(
        monitor: Monitor,
        pid: u32,
        uid: u32,
        belongings: ProcessResources,
    ) -> io::Result<Self> {
        let ProcessResources { dir, view, group, sockets } = belongings;
        let held = Arc::new(ProcessInner {
            monitor,
            pid,
            uid,
            dir,
            view: Mutex::new(view),
            group: Mutex::new(group),
            sockets: Mutex::new(sockets),
            released: CancellationToken::new(),
        });
        let control = readable(ControlFd(held.clone()))?;
        let pidfd = readable(PidFd(held.clone()))?;
        let (exit_sender, exit) = watch::channel(None);
        let (gone_sender, gone) = watch::channel(false);
        let released = held.released.clone();
        tokio::spawn(async move {
            // A released process belongs to another supervisor and is not touched any more, even if it ends.
            released.run_until_cancelled(watch_until_gone(control, pidfd, exit_sender)).await;
            gone_sender.send_replace(true);
        });
        Ok(Self { inner: held, exit, gone, handover_state: OnceLock::new() })
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
    pub(super) fn set_ready(&self, standing: HandoverState) {
        // A process becomes ready once.
        let _ = self.handover_state.set(standing);
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

    /// The data that another supervisor needs to take it over, with duplicates of its descriptors. Changes nothing.
    ///
    /// # Errors
    /// `NotFound` if it has ended or is not ready, and when there are too many open files.
    pub(crate) fn hand_over(
        &self,
        name: &PluginName,
        instance: u32,
        counted: InstanceCounters,
        packer: &mut Packer,
    ) -> io::Result<ProcessRecord> {
        let held = &self.inner;
        let standing = self.handover_state.get().ok_or(io::ErrorKind::NotFound)?;
        let HandoverState { handshake, .. } = standing;
        let MonitorParts { monitor, program, control, pidfd, program_pidfd } = held.monitor.share()?;
        let (inside, listening) = held.dir.sockets().duplicate_fds()?;
        let sockets = held.sockets.lock();
        let proxy = sockets.proxy.as_ref().map(Proxy::socket).transpose()?;
        let state = sockets.state.as_ref().map(|state| state.socket()).transpose()?;
        drop(sockets);
        let group = held.group.lock().as_ref().map(|group| group.dir().to_owned());
        let (stdout, stderr) = (standing.stdout.duplicate_fd()?, standing.stderr.duplicate_fd()?);
        // Nothing fails from here on, so every packed descriptor is mentioned in the document.
        let mut add = |descriptor| packer.add(descriptor);
        Ok(ProcessRecord {
            plugin: name.as_str().to_owned(),
            instance,
            fingerprint: standing.fingerprint.clone().ok_or(io::ErrorKind::NotFound)?,
            digest: standing.digest.clone(),
            program,
            monitor: MonitorRecord {
                who: monitor,
                control: add(control),
                pidfd: add(pidfd),
                program: add(program_pidfd),
            },
            stdout: add(stdout),
            stderr: add(stderr),
            dir: DirRecord {
                name: held.dir.name().to_owned(),
                inside: inside.map(&mut add),
                listening: listening.map(&mut add),
            },
            view: held.view.lock().as_ref().map(|view| view.to_handover()),
            group,
            proxy: proxy.map(&mut add),
            state: state.map(&mut add),
            identity: standing.identity.as_ref().map(ClientIdentity::hand_over),
            handshake: handshake.dialect,
            dialect: standing.dialect,
            address: match &handshake.address {
                Address::Unix(path) => AddressRecord::Unix(path.clone()),
                Address::Tcp(address) => AddressRecord::Tcp(*address),
            },
            server_cert: handshake.server_cert.clone(),
            report: standing.report.clone(),
            starts: counted.starts,
            ready_since_unix_ms: unix_ms(counted.ready_since),
            start_to_ready_us: counted.start_to_ready.and_then(|took| u64::try_from(took.as_micros()).ok()),
        })
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

#[expect(
    deprecated,
    reason = "the successor is unsafe, which this crate forbids; what it asks for holds: the descriptor belongs to \
              the monitor, which lives as long as anybody waits on it"
)]
fn readable<F: AsRawFd>(fd: F) -> io::Result<AsyncFd<F>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

/// Watches it until none of it is left.
async fn watch_until_gone(
    control: AsyncFd<ControlFd>,
    pidfd: AsyncFd<PidFd>,
    exit: watch::Sender<Option<Exit>>,
) {
    let held = control.get_ref().0.clone();
    let status = wait_program_exit(&control).await;
    // The cgroup knows about memory; a monitor that was killed along with the program cannot tell.
    let status = held.group.lock().as_ref().map_or(status, |group| group.explain(status));
    *held.sockets.lock() = ServedSockets::default();
    exit.send_replace(Some(Exit { status }));
    if tokio::time::timeout(CLEANUP_TIMEOUT, wait_monitor_exit(&pidfd)).await.is_err() {
        held.kill_all();
        if tokio::time::timeout(CLEANUP_TIMEOUT, wait_monitor_exit(&pidfd)).await.is_err() {
            held.monitor.kill_monitor();
            wait_monitor_exit(&pidfd).await;
        }
    }
    let removed = tokio::task::spawn_blocking(move || {
        // This kills what may be left in the cgroup, and waits for that.
        drop(held.group.lock().take());
        held.dir.remove();
        drop(held.view.lock().take());
    });
    let _ = removed.await;
}

fn unix_ms(at: Option<SystemTime>) -> u64 {
    let since = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Waits for the monitor's report about the program, or for the monitor's end.
async fn wait_program_exit(control: &AsyncFd<ControlFd>) -> ExitStatus {
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
async fn wait_monitor_exit(pidfd: &AsyncFd<PidFd>) {
    loop {
        let Ok(mut ready) = pidfd.readable().await else { return };
        match pidfd.get_ref().0.monitor.reap() {
            Ok(false) => ready.clear_ready(),
            Ok(true) | Err(_) => return,
        }
    }
}
