//! Programs of our own beside the plugins: unprivileged, jailed, and kept running for as long as the supervisor lives.
//!
//! ```text
//! Registry::service(spec, link) ─► driver task ── start ─► Link::started(our end of its standard input)
//!                                        ▲                     │ whatever ended it
//!                                        └── wait ◄── Link::ended(how, again in)
//! ```
//!
//! A service is what the supervisor itself must not do: it opens databases, say. So it gets as little as a plugin does (a
//! uid of its own, a private directory, a jail, limits), and besides that a directory that stays, its home.
//!
//! It is started again for ever. What it serves is missed as long as it is away, and nobody is there to tell it to try
//! once more; the wait between two starts is bounded from both sides, so that one which cannot start costs little.

mod driver;
mod home;
mod spec;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use talon_sanitize::Sanitized;
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::home::Home;
pub use self::spec::{Link, ServiceSpec};
use crate::logs::LogSink;
use crate::name::PluginName;
use crate::seam::Launch;

/// The handle on a service. Cheap to clone; when the last one is dropped, the registry's among them, it is stopped.
#[derive(Debug, Clone)]
pub struct Service {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    name: PluginName,
    logs: LogSink,
    shared: Arc<Shared>,
    /// True once it will not be started again and nothing of it is left, as far as can be known.
    ended: watch::Receiver<bool>,
    stop: CancellationToken,
    _guard: DropGuard,
}

/// What the handles and the driver share.
#[derive(Debug)]
struct Shared {
    status: Mutex<ServiceStatus>,
    /// The spec's, or less.
    grace: Mutex<Duration>,
    /// Told when its process is to be killed and another started.
    replace: Notify,
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, ServiceStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grace(&self) -> MutexGuard<'_, Duration> {
        self.grace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// Who it runs as.
    pub uid: u32,
    /// How often it was started again.
    pub restarts: u64,
    /// Whether it runs.
    pub running: bool,
    /// How it ended last, or why it could not be started; `None` if it never did.
    pub last_end: Option<Sanitized>,
    /// Protections of its last start that do not hold, or only by a stand-in, as plugins' snapshots have them.
    pub not_enforced: Vec<Sanitized>,
}

impl Service {
    /// Starts it, and goes on starting it until `stop`. Must be called within a tokio runtime.
    pub(crate) fn run(
        launcher: Arc<dyn Launch>,
        spec: ServiceSpec,
        link: Arc<dyn Link>,
        logs: LogSink,
        stop: CancellationToken,
    ) -> Self {
        let own = || rustix::process::geteuid().as_raw();
        let status = ServiceStatus {
            pid: None,
            uid: spec.home.identity.map_or_else(own, |identity| identity.uid),
            restarts: 0,
            running: false,
            last_end: None,
            not_enforced: Vec::new(),
        };
        let shared = Arc::new(Shared {
            status: Mutex::new(status),
            grace: Mutex::new(spec.grace_period),
            replace: Notify::new(),
        });
        let (told, ended) = watch::channel(false);
        let name = spec.name.clone();
        let driver = driver::Driver {
            launcher,
            spec,
            link,
            logs: logs.clone(),
            shared: shared.clone(),
            stop: stop.clone(),
        };
        tokio::spawn(async move {
            driver.run().await;
            told.send_replace(true);
        });
        let _guard = stop.clone().drop_guard();
        Self { handle: Arc::new(Handle { name, logs, shared, ended, stop, _guard }) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &PluginName {
        &self.handle.name
    }

    /// How it is now.
    #[must_use]
    pub fn status(&self) -> ServiceStatus {
        self.handle.shared.status().clone()
    }

    /// Its last lines, and those that come.
    #[must_use]
    pub fn logs(&self) -> crate::logs::LogTail {
        self.handle.logs.tail()
    }

    /// Kills its process, for whoever finds that it does not answer any more; it is started again as after any other end.
    /// Nothing happens while there is none.
    pub fn replace(&self) {
        self.handle.shared.replace.notify_waiters();
    }

    /// Stops it for good. It is asked ([`Link::stopping`]), gets SIGTERM after its grace period and SIGKILL after that
    /// time once more; when this returns, at the latest some seconds after twice its grace period, nothing of it is left.
    pub async fn stop(&self) {
        self.retire(None).await;
    }

    /// Stops it for good, within `grace` or its own shorter grace period.
    pub(crate) async fn retire(&self, grace: Option<Duration>) {
        let handle = &self.handle;
        if let Some(grace) = grace {
            let mut held = handle.shared.grace();
            *held = grace.min(*held);
        }
        handle.stop.cancel();
        // An error says that its driver is gone without a word, and its process with it.
        let _ = handle.ended.clone().wait_for(|ended| *ended).await;
        handle.logs.flush().await;
    }

    /// Whether it will not be started again.
    pub(crate) fn has_ended(&self) -> bool {
        *self.handle.ended.borrow() || self.handle.ended.has_changed().is_err()
    }
}

#[cfg(test)]
mod tests;
