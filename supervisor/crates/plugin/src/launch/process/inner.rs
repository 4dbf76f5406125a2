//! What the handle on a process and the task that watches it share.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_egress::Proxy;
use talon_jail::{ExitStatus, Group, Monitor};
use tokio_util::sync::CancellationToken;

use crate::rundir::PrivateDir;
use crate::state_sockets::AttachedSocket;
use crate::view::View;

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

#[derive(Debug)]
pub(super) struct ProcessInner {
    pub(super) monitor: Monitor,
    pub(super) pid: u32,
    pub(super) uid: u32,
    pub(super) dir: Arc<PrivateDir>,
    pub(super) view: Mutex<Option<Arc<View>>>,
    pub(super) group: Mutex<Option<Group>>,
    /// Until the program ends.
    pub(super) sockets: Mutex<ServedSockets>,
    /// Another supervisor owns the process.
    pub(super) released: CancellationToken,
}

/// The sockets that are served for a process.
#[derive(Debug, Default)]
pub(in crate::launch) struct ServedSockets {
    /// Its egress proxy.
    pub(in crate::launch) proxy: Option<Proxy>,
    /// Its key-value store.
    pub(in crate::launch) state: Option<Box<dyn AttachedSocket>>,
    /// Its completions of language models.
    pub(in crate::launch) model: Option<Box<dyn AttachedSocket>>,
}

impl ProcessInner {
    /// Kills through the monitor and through the cgroup: each reaches processes that the other may miss.
    pub(super) fn kill_all(&self) {
        if let Err(error) = self.monitor.kill_all() {
            tracing::warn!(pid = self.pid, %error, "a process could not be killed");
        }
        if let Some(Err(error)) = self.group.lock().as_ref().map(Group::kill) {
            tracing::warn!(pid = self.pid, %error, "a cgroup could not be killed");
        }
    }
}
