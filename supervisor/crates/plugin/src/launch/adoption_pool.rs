//! Processes that another supervisor handed over, until their plugin is started.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use talon_control::fd_bundle::{FdIndex, MissingFdError, Unpacker};
use talon_egress::ListenerPurpose;
use talon_jail::{AdoptError, Group, Monitor, MonitorParts};
use talon_plugin_client::connect::is_descendant;
use talon_plugin_config::host_port::HostPortError;
use talon_plugin_config::name::PluginName;

use super::process::{Process, ProcessResources, ServedSockets};
use crate::handover::{AdoptionCounts, ProcessRecord};
use crate::rundir::{PrivateDir, RuntimeDir};
use crate::view::Views;

/// A handed-over process. Dropping it kills the process; its directory is removed when it is gone.
#[derive(Debug)]
pub(super) struct AdoptedProcess {
    pub(super) handed: ProcessRecord,
    pub(super) process: Process,
    pub(super) dir: Arc<PrivateDir>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// The sockets of its egress proxy and its key-value store.
    pub(super) proxy: Option<OwnedFd>,
    /// The proxy's sockets inside its network.
    pub(super) inside: Vec<(OwnedFd, ListenerPurpose)>,
    pub(super) state: Option<OwnedFd>,
    /// The socket for completions of language models.
    pub(super) model: Option<OwnedFd>,
}

/// Why a process cannot be taken over.
#[derive(Debug, thiserror::Error)]
enum AdoptionError {
    #[error(transparent)]
    MissingDescriptor(#[from] MissingFdError),
    #[error("{0:?} is no plugin's name")]
    Name(String),
    #[error("its private directory cannot be used: {0}")]
    Directory(#[source] io::Error),
    #[error("what it runs from cannot be used: {0}")]
    View(#[source] io::Error),
    #[error(transparent)]
    Process(#[from] AdoptError),
    #[error("its program is not below its monitor")]
    NotBelow,
    #[error("it cannot be watched: {0}")]
    Watch(#[source] io::Error),
    #[error("a socket inside its network is for no host: {0}")]
    Target(#[source] HostPortError),
    #[error("it was handed over twice")]
    Duplicate,
}

/// The processes that wait for their plugin, by plugin and instance.
#[derive(Default)]
pub(super) struct AdoptionPool {
    waiting: Mutex<BTreeMap<(PluginName, u32), AdoptedProcess>>,
    /// The monitors of all handed-over processes, each with a future that resolves when it is gone.
    monitors: Mutex<Vec<(u32, BoxFuture<'static, ()>)>>,
    received: usize,
    taken_over: AtomicUsize,
    refused: AtomicUsize,
}

impl AdoptionPool {
    /// Unpacks the handed-over processes. Incomplete or inconsistent ones are killed; the log says why.
    pub(super) fn unpack(
        processes: Vec<ProcessRecord>,
        unpacker: &mut Unpacker,
        runtime: &Arc<RuntimeDir>,
        views: &Views,
    ) -> Self {
        let shelf = Self { received: processes.len(), ..Self::default() };
        for handed in processes {
            let (plugin, instance) = (handed.plugin.clone(), handed.instance);
            if let Err(why) = shelf.insert(handed, unpacker, runtime, views) {
                shelf.count_refused();
                tracing::warn!(?plugin, instance, %why, "a process that was handed over is not taken over, and ends");
            }
        }
        shelf
    }

    fn insert(
        &self,
        handed: ProcessRecord,
        unpacker: &mut Unpacker,
        runtime: &Arc<RuntimeDir>,
        views: &Views,
    ) -> Result<(), AdoptionError> {
        let name = PluginName::new(&handed.plugin).map_err(|_| AdoptionError::Name(handed.plugin.clone()))?;
        // Unpacked first: if a later step fails, dropping this ends the process.
        let lifeline = MonitorParts {
            monitor: handed.monitor.who,
            program: handed.program,
            control: unpacker.take(handed.monitor.control)?,
            pidfd: unpacker.take(handed.monitor.pidfd)?,
            program_pidfd: unpacker.take(handed.monitor.program)?,
        };
        let mut optional = |ticket: Option<FdIndex>| ticket.map(|ticket| unpacker.take(ticket)).transpose();
        let (inside, listening) = (optional(handed.dir.inside)?, optional(handed.dir.listening)?);
        let (proxy, state) = (optional(handed.proxy)?, optional(handed.state)?);
        let model = optional(handed.model)?;
        let proxied = handed.inside.iter().map(|record| {
            let purpose = record.purpose().map_err(AdoptionError::Target)?;
            Ok::<_, AdoptionError>((unpacker.take(record.socket)?, purpose))
        });
        let proxied = proxied.collect::<Result<Vec<_>, _>>()?;
        let (stdout, stderr) = (unpacker.take(handed.stdout)?, unpacker.take(handed.stderr)?);
        let dir = runtime.adopt(&handed.dir.name, inside, listening).map_err(AdoptionError::Directory)?;
        let dir = Arc::new(dir);
        let view = handed.view.as_ref().map(|view| views.adopt(&name, view)).transpose();
        let view = view.map_err(AdoptionError::View)?;
        let monitor = Monitor::adopt(lifeline)?;
        let (pid, uid) = (handed.program.pid, handed.program.uid);
        if !i32::try_from(pid).is_ok_and(|pid| is_descendant(pid, monitor.pid())) {
            return Err(AdoptionError::NotBelow);
        }
        // A process can run without its cgroup: the monitor reaches everything that it started.
        let group = handed.group.clone().and_then(|group| match Group::adopt(group, monitor.pid()) {
            Ok(group) => Some(group),
            Err(error) => {
                tracing::warn!(plugin = %name, %error, "its cgroup is not taken over, so that its limits are no longer set");
                None
            }
        });
        let monitor_pid = monitor.pid();
        let belongings =
            ProcessResources { dir: dir.clone(), view, group, sockets: ServedSockets::default() };
        let process = Process::new(monitor, pid, uid, belongings).map_err(AdoptionError::Watch)?;
        self.monitors.lock().push((monitor_pid, process.gone_signal().boxed()));
        let key = (name, handed.instance);
        let mut waiting = self.waiting.lock();
        if waiting.contains_key(&key) {
            return Err(AdoptionError::Duplicate);
        }
        waiting.insert(
            key,
            AdoptedProcess { handed, process, dir, stdout, stderr, proxy, inside: proxied, state, model },
        );
        Ok(())
    }

    /// Takes the process that waits for this instance.
    pub(super) fn take(&self, plugin: &PluginName, instance: u32) -> Option<AdoptedProcess> {
        self.waiting.lock().remove(&(plugin.clone(), instance))
    }

    pub(super) fn count_taken_over(&self) {
        self.taken_over.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the processes that still wait, and returns how many there were.
    pub(super) fn discard(&self) -> usize {
        let left = std::mem::take(&mut *self.waiting.lock());
        for (plugin, instance) in left.keys() {
            self.count_refused();
            tracing::info!(%plugin, instance, "no plugin claimed this process, which was handed over; it is ended");
        }
        left.len()
    }

    pub(super) fn counts(&self) -> AdoptionCounts {
        AdoptionCounts {
            received: self.received,
            taken_over: self.taken_over.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            waiting: self.waiting.lock().len(),
        }
    }

    /// The monitors that are still alive.
    pub(super) fn living_monitors(&self) -> BTreeSet<u32> {
        let mut monitors = self.monitors.lock();
        monitors.retain_mut(|(_, gone)| gone.now_or_never().is_none());
        monitors.iter().map(|(pid, _)| *pid).collect()
    }
}

impl std::fmt::Debug for AdoptionPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.waiting.lock().keys()).finish()
    }
}
