//! Our own programs beside the plugins: unprivileged, jailed, and kept running as long as the supervisor
//! lives.
//!
//! ```text
//! Registry::service(spec, hooks) ─► driver task ── start ─► ServiceHooks::on_started(our end of its standard input)
//!                                         ▲                     │ it exits
//!                                         └── wait ◄── ServiceHooks::on_ended(how, again in)
//! ```
//!
//! A service does what the supervisor must not do in its own process, such as opening databases. It gets as
//! few privileges as a plugin: its own uid, a private directory, a jail, limits. In addition it has a
//! persistent directory, its home.
//!
//! It is restarted for ever, because no operator is there to restart it while its clients wait: at once, and
//! after further exits within five minutes later each time, so that a service which cannot start costs
//! little.

mod driver;
mod hooks;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::hooks::ServiceHooks;
pub use self::shared::ServiceStatus;
use self::shared::Shared;
pub use crate::service_spec::{Home, ServiceSpec};
use talon_plugin_config::name::PluginName;

use crate::launcher::Launch;
use crate::logs::LogSink;

/// A handle on a service. Cheap to clone. When the last one is dropped, including the registry's, the service
/// is stopped.
#[derive(Debug, Clone)]
pub struct Service {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    name: PluginName,
    logs: LogSink,
    shared: Arc<Shared>,
    /// True once it will not be restarted and all of it is gone, as far as we can know.
    ended: watch::Receiver<bool>,
    stop: CancellationToken,
    _guard: DropGuard,
}

impl Service {
    /// Starts the service and restarts it until `stop`. Must be called within a tokio runtime.
    pub(crate) fn spawn(
        launcher: Arc<dyn Launch>,
        spec: ServiceSpec,
        link: Arc<dyn ServiceHooks>,
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
            restart: Notify::new(),
        });
        let (told, ended) = watch::channel(false);
        let name = spec.name.clone();
        let driver = driver::Driver {
            launcher,
            spec,
            hooks: link,
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

    /// The current status.
    #[must_use]
    pub fn status(&self) -> ServiceStatus {
        self.handle.shared.status().clone()
    }

    /// Its last log lines, and a channel for new ones.
    #[must_use]
    pub fn logs(&self) -> crate::logs::LogTail {
        self.handle.logs.tail()
    }

    /// Kills its process, for a caller that finds it unresponsive. It is restarted as after any other exit.
    /// Does nothing while there is no process.
    pub fn restart(&self) {
        self.handle.shared.restart.notify_waiters();
    }

    /// Stops it permanently. It is asked to stop ([`ServiceHooks::on_stopping`]), gets SIGTERM after its
    /// grace period, and SIGKILL after the same time again. When this returns, at most some seconds after
    /// twice the grace period, all of it is gone.
    pub async fn stop(&self) {
        self.stop_within(None).await;
    }

    /// Stops it permanently, within `grace` or its own shorter grace period.
    pub(crate) async fn stop_within(&self, grace: Option<Duration>) {
        let handle = &self.handle;
        if let Some(grace) = grace {
            let mut held = handle.shared.grace();
            *held = grace.min(*held);
        }
        handle.stop.cancel();
        // An error means that the driver task ended early, and its process with it.
        let _ = handle.ended.clone().wait_for(|ended| *ended).await;
        handle.logs.flush().await;
    }

    /// Whether it will not be restarted.
    pub(crate) fn has_ended(&self) -> bool {
        *self.handle.ended.borrow() || self.handle.ended.has_changed().is_err()
    }
}

#[cfg(test)]
mod tests;
